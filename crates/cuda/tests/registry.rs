//! Every op of the registry on the GPU against its reference evaluation in f64: dense, in views, in place, in 16 bits.
//! Without a GPU the tests say "skipped: no CUDA device".

mod common;

use common::executor;
use ocelli_cuda::{CudaTarget, Machine};
use ocelli_ir::executor::{Executor, Target};
use ocelli_ir::op::Gen;
use ocelli_ir::ops::registry;
use ocelli_ir::{DType, Op};
use ocelli_testkit::case::{Case, Lie, is_memory};
use ocelli_testkit::tolerance::{cancels, op_bound};

/// Samples of each op. A failure of one op does not hide those of others.
const SEEDS: u64 = 12;

#[test]
fn every_op_equals_its_reference() {
    let Some(gpu) = executor() else { return };
    let mut failed = Vec::new();
    for (name, sample) in registry() {
        let sample = |seed| sample(&mut Gen::new(seed));
        if is_memory(&sample(0).op) {
            continue;
        }
        let one = |seed: u64| {
            let sample = sample(seed);
            let kinds = [
                (None, Lie::Dense),
                (None, Lie::Views),
                (None, Lie::InPlace),
                (Some(DType::Bf16), Lie::Dense),
                (Some(DType::F16), Lie::Views),
            ];
            for (half, lie) in kinds {
                let case = Case::stored(gpu.target(), &sample, &mut Gen::new(seed), lie, half);
                // Which ops are fused, each device says for itself.
                if name == "fused" && !gpu.target().has_kernel(&case.op, &case.types()) {
                    continue;
                }
                let floor = if cancels(name) { case.largest.max(1.0) } else { 0.0 };
                // A GPU adds in other groups than the CPU, and its functions are a little less exact. Products in 16 bits
                // round what lies between their parts (weights of attention, gradients of logits) as well.
                let parts = if half.is_some() && !case.op.operands().is_empty() { 1.0 / 128.0 } else { 0.0 };
                case.check(&gpu, 4.0 * op_bound(name) + parts, floor);
                assert!(case.run(&gpu) == case.run(&gpu), "{name}: two runs differ");
            }
        };
        for seed in 0..SEEDS {
            if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one(seed))) {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "?".into());
                failed.push(format!("{name} seed {seed}: {text}"));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{} of the ops:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_op_of_the_registry_has_a_kernel() {
    let target = CudaTarget::new(Machine::new(132));
    let lacking: Vec<&str> = registry()
        .into_iter()
        .filter(|(_, sample)| {
            let sample = sample(&mut Gen::new(1));
            let types: Vec<_> = sample.inputs.iter().map(|(ty, _)| ty.clone()).collect();
            target.has_kernel(&sample.op, &types) == is_memory(&sample.op)
                && !matches!(sample.op, Op::Fused(_))
        })
        .map(|(name, _)| name)
        .collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}
