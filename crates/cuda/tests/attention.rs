//! Attention and its gradient on the GPU against their definition in f64, at the shapes of models, in f32 and 16 bits. Without
//! a GPU their kernels are compiled, if there is the compiler.

mod common;

use common::executor;
use common::shapes::attentions;
use ocelli_cuda::{CudaTarget, Machine, NvrtcFault, compile, kernel_sources};
use ocelli_ir::DType;
use ocelli_ir::executor::Executor;
use ocelli_ir::op::Gen;
use ocelli_testkit::case::{Case, Lie};
use std::collections::BTreeSet;

#[test]
fn attention_equals_its_definition() {
    let Some(gpu) = executor() else { return };
    let mut failed = Vec::new();
    for (i, sample) in attentions().iter().enumerate() {
        // What is rounded on the way: weights and their gradients, to 16 bits.
        for (half, bound) in [(None, 1e-5), (Some(DType::Bf16), 1.0 / 128.0), (Some(DType::F16), 1.0 / 512.0)]
        {
            let case = Case::stored(gpu.target(), sample, &mut Gen::new(i as u64), Lie::Dense, half);
            let one = || {
                case.check(&gpu, bound, 0.0);
                assert!(case.run(&gpu) == case.run(&gpu), "two runs differ");
            };
            if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(one)) {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "?".into());
                failed.push(format!("shape {}, {half:?}: {text}", i / 2));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn its_kernels_compile() {
    if let Err(NvrtcFault::Missing(why)) = compile("", "sm_80") {
        println!("skipped: {why}");
        return;
    }
    let mut sources = BTreeSet::new();
    for tf32 in [false, true] {
        let machine = Machine { tf32, shared: 227 * 1024, ..Machine::new(132) };
        let target = CudaTarget::new(machine);
        for sample in attentions() {
            for half in [None, Some(DType::Bf16), Some(DType::F16)] {
                let case = Case::stored(&target, &sample, &mut Gen::new(3), Lie::Dense, half);
                sources.extend(kernel_sources(&case.plan, machine).unwrap());
            }
        }
    }
    for source in sources {
        for arch in ["sm_80", "sm_90a"] {
            compile(&source, arch).unwrap_or_else(|e| panic!("{arch}: {e}"));
        }
    }
}
