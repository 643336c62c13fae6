//! The memory of a training step at several sizes: a line each.

use crate::args::Dtype;
use ocelli_config::{AmpDtype, Config, Switch};
use ocelli_ir::DType;
use ocelli_ir::executor::Target;
use ocelli_train::engine::Setup;
use ocelli_train::explain;
use ocelli_train::program::Size;
use ocelli_train::settings;
use serde_json::{Value, json};

/// The memory of a step of one size.
pub struct Memory {
    size: Size,
    dtype: Dtype,
    /// Weights, moments and what else outlives a step, in bytes.
    state: usize,
    /// Scratch memory of the largest program of the step, in bytes.
    scratch: usize,
}

/// The type that a configuration trains in.
pub fn dtype(c: &Config) -> Dtype {
    match (c.trainer.use_amp, c.trainer.amp_dtype) {
        (Switch::On, AmpDtype::Bf16) => Dtype::Bf16,
        (Switch::On, AmpDtype::Fp16) => Dtype::Fp16,
        _ => Dtype::F32,
    }
}

/// The setup of the same step in another type.
pub fn in_dtype(c: &Config, mut setup: Setup, dtype: Dtype) -> Setup {
    let mut c = c.clone();
    c.trainer.use_amp = (dtype != Dtype::F32).into();
    c.trainer.amp_dtype = if dtype == Dtype::Fp16 { AmpDtype::Fp16 } else { AmpDtype::Bf16 };
    setup.options = settings::passes(&c);
    if let Some(optimizer) = &mut setup.optimizer {
        optimizer.scale_loss = setup.options.precision.is_some_and(|p| p.half == DType::F16);
    }
    setup
}

/// The memory of a step.
pub fn memory(setup: &Setup, size: Size, dtype: Dtype, target: &dyn Target) -> anyhow::Result<Memory> {
    let programs = explain::step(setup, size, target)?;
    let most = |f: fn(&explain::Explained) -> usize| programs.iter().map(f).max().unwrap_or(0);
    let (state, scratch) = (most(|p| p.plan.state.bytes(|_| true)), most(|p| p.plan.arena_bytes));
    Ok(Memory { size, dtype, state, scratch })
}

/// A table.
pub fn lines(all: &[Memory]) -> Vec<String> {
    let heads = format!(
        "{:>7} {:>7}  {:<5} {:>10} {:>10} {:>10}",
        "batch", "length", "dtype", "state", "scratch", "both"
    );
    let mb = |bytes: usize| format!("{:.1}", bytes as f64 / 1e6);
    let line = |m: &Memory| {
        let [state, scratch, both] = [m.state, m.scratch, m.state + m.scratch].map(mb);
        let (batch, text) = (m.size.batch, m.size.text);
        format!("{batch:>7} {text:>7}  {:<5} {state:>10} {scratch:>10} {both:>10}", m.dtype.name())
    };
    let mut out = vec!["memory of a training step, in MB".into(), heads];
    out.extend(all.iter().map(line));
    out
}

/// The same for programs.
pub fn object(all: &[Memory]) -> Value {
    let one = |m: &Memory| {
        json!({
            "batch": m.size.batch, "length": m.size.text, "dtype": m.dtype.name(),
            "state_bytes": m.state, "scratch_bytes": m.scratch, "bytes": m.state + m.scratch,
        })
    };
    json!({"sizes": all.iter().map(one).collect::<Vec<_>>()})
}
