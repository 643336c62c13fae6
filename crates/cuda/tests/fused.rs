//! Products and gradients of norms with an epilogue on the GPU against their plain definitions in f64, in 16 bits, at sizes
//! that no tile divides.

mod common;

use common::bodies::{bodies, layers};
use common::executor;
use ocelli_cuda::{CudaTarget, Machine};
use ocelli_ir::DType;
use ocelli_ir::executor::{Executor, Target};
use ocelli_ir::op::Gen;
use ocelli_testkit::case::{Case, Lie};

#[test]
fn fused_ops_equal_their_plain_definitions() {
    let Some(gpu) = executor() else { return };
    for half in [DType::Bf16, DType::F16] {
        for (i, sample) in bodies(half).iter().enumerate() {
            let case = Case::new(gpu.target(), sample, &mut Gen::new(i as u64), Lie::Dense);
            // A wide product is the library's where its instructions are better.
            let wide = case.types().iter().any(|t| t.shape.last() == Some(&320));
            if wide && !gpu.target().has_kernel(&case.op, &case.types()) {
                continue;
            }
            assert!(gpu.target().has_kernel(&case.op, &case.types()), "{}: no kernel", case.op);
            // The definition rounds what lies between to 16 bits, up to three times, the kernel does not.
            let step = if half == DType::Bf16 { 2.0 / 256.0 } else { 2.0 / 2048.0 };
            case.check(&gpu, step + 1e-5, 1.0);
            assert!(case.run(&gpu) == case.run(&gpu), "{}: two runs differ", case.op);
        }
    }
}

#[test]
fn hidden_layers_equal_their_plain_definitions() {
    let Some(gpu) = executor() else { return };
    for half in [DType::Bf16, DType::F16] {
        for (i, sample) in layers(half).iter().enumerate() {
            let case = Case::new(gpu.target(), sample, &mut Gen::new(i as u64), Lie::Dense);
            if !gpu.target().has_kernel(&case.op, &case.types()) {
                println!("skipped: no kernels for hidden layers on this GPU");
                return;
            }
            // The definition rounds what lies between to 16 bits, two or three times, the kernel once.
            let step = if half == DType::Bf16 { 2.0 / 256.0 } else { 2.0 / 2048.0 };
            case.check(&gpu, step + 1e-5, 1.0);
            assert!(case.run(&gpu) == case.run(&gpu), "{}: two runs differ", case.op);
        }
    }
}

#[test]
fn hidden_layers_are_one_op_where_there_is_wgmma() {
    let hopper = Machine { wgmma: true, shared: 227 << 10, ..Machine::new(132) };
    for (machine, wanted) in [(hopper, true), (Machine::new(132), false)] {
        let target = CudaTarget::new(machine);
        for sample in layers(DType::Bf16) {
            let types: Vec<_> = sample.inputs.iter().map(|(ty, _)| ty.clone()).collect();
            assert_eq!(target.has_kernel(&sample.op, &types), wanted, "{}", sample.op);
        }
    }
}
