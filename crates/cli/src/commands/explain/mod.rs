//! `ocelli explain`: what a training step would do.

pub mod device;
mod json;
mod sizes;
mod text;

use super::step_of;
use crate::args::{Device, Explain as Args};
use crate::output::{arrived, say, say_json, warn};
use anyhow::{Context, bail};
use device::Peaks;
use ocelli_config::{Config, Device as On};
use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_ir::executor::Target;
use ocelli_train::engine::Setup;
use ocelli_train::explain::{self, Explained};
use ocelli_train::groups;
use ocelli_train::program::Size;
use serde_json::json;

/// Shows the programs of a training step.
pub fn explain(args: &Args) -> anyhow::Result<()> {
    let mut c = step_of::config(&args.step)?.for_training()?.clone();
    let device = if args.device == Device::This { here(&c)? } else { args.device };
    let target = device.target(&c);
    super::device::settle(&mut c, &*target);
    let (mut setup, longest) = step_of::setup(&args.step, &c)?;
    let one = |n: &[u64]| n.first().copied();
    let size = step_of::sized(&c, longest, one(&args.batch), one(&args.length))?;
    if args.batch.len() > 1 || args.length.len() > 1 || args.dtype.len() > 1 {
        return several(args, &c, setup, longest, &*target);
    }
    if let Some(&dtype) = args.dtype.first() {
        setup = sizes::in_dtype(&c, setup, dtype);
    }
    let programs = explain::step(&setup, size, &*target)?;
    if let Some(program) = programs.first() {
        groups::notes(&c, &program.plan.state)?.iter().for_each(|line| warn(&format!("note: {line}")));
    }
    if let Some(pass) = &args.graph {
        graph(&programs, pass, args.json)?;
        return arrived();
    }
    let peaks = Peaks::of(device, &c)?;
    if args.json {
        say_json(&json::object(&programs, &peaks, size));
    } else {
        say(&text::lines(&programs, &peaks, args.launches).join("\n"));
    }
    arrived()
}

/// The device that `train` would use here: a GPU whose data sheet is known, or this machine's CPU.
fn here(c: &Config) -> anyhow::Result<Device> {
    const SHEETS: &str = "of GPUs explain knows the data sheets of A100, H100 and H200";
    let gpu = match c.trainer.device {
        On::Cpu => return Ok(Device::This),
        On::Auto => CudaExecutor::new(CudaOptions::default()).ok(),
        On::Cuda => Some(CudaExecutor::new(CudaOptions::default()).with_context(|| {
            format!("trainer_config.device=cuda ({SHEETS} also where there is none: --device h200)")
        })?),
    };
    let Some(name) = gpu.map(|gpu| gpu.info().name.clone()) else { return Ok(Device::This) };
    let known = [("A100", Device::A100), ("H100", Device::H100), ("H200", Device::H200)];
    match known.into_iter().find(|(model, _)| name.contains(model)) {
        Some((_, device)) => Ok(device),
        None if c.trainer.device == On::Cuda => bail!("trainer_config.device=cuda is {name}: {SHEETS}"),
        None => {
            warn(&format!("note: `train` would use {name}, but {SHEETS}: this is the step on the CPU"));
            Ok(Device::This)
        }
    }
}

/// Shows the memory of steps of several sizes.
fn several(
    args: &Args,
    c: &Config,
    mut setup: Setup,
    longest: Size,
    target: &dyn Target,
) -> anyhow::Result<()> {
    if args.graph.is_some() || args.launches {
        bail!("--graph and --launches show one step: give one --batch, one --length and one --dtype");
    }
    let list = |n: &[u64]| if n.is_empty() { vec![None] } else { n.iter().copied().map(Some).collect() };
    let dtypes = if args.dtype.is_empty() { vec![sizes::dtype(c)] } else { args.dtype.clone() };
    let mut all = Vec::new();
    for dtype in dtypes {
        setup = sizes::in_dtype(c, setup, dtype);
        for batch in list(&args.batch) {
            for length in list(&args.length) {
                let size = step_of::sized(c, longest, batch, length)?;
                all.push(sizes::memory(&setup, size, dtype, target)?);
            }
        }
    }
    if args.json {
        say_json(&sizes::object(&all));
    } else {
        say(&sizes::lines(&all).join("\n"));
    }
    arrived()
}

/// The graphs behind one pass.
fn graph(programs: &[Explained], pass: &str, as_json: bool) -> anyhow::Result<()> {
    let behind = |p| -> Vec<_> {
        let p: &Explained = p;
        p.stages.iter().filter(|s| s.name == pass).map(|s| (&p.plan.name, &s.text)).collect()
    };
    let found: Vec<(&String, &String)> = programs.iter().flat_map(behind).collect();
    if as_json && !found.is_empty() {
        let one = |(name, text): &(&String, &String)| json!({"program": name, "pass": pass, "graph": text});
        say_json(&json!({"graphs": found.iter().map(one).collect::<Vec<_>>()}));
    } else {
        found.iter().for_each(|(name, text)| say(&format!("program {name} behind {pass}:\n{text}")));
    }
    if found.is_empty() {
        let names: Vec<&str> = programs.iter().flat_map(|p| &p.stages).map(|s| s.name).collect();
        bail!("--graph {pass}: no such pass here; there are {}", names.join(", "));
    }
    Ok(())
}
