//! Pass `fuse` on whole training steps: fewer launches, and on the CPU the same bits, whatever else is on.

mod step_support;

use ocelli_cpu::CpuTarget;
use ocelli_ir::plan::Plan;
use ocelli_ir::{DType, StateSpec};
use ocelli_passes::{Options, PassCx, Precision, Stage, pipeline};
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::sync::Arc;
use step_support::{MODEL, after_three_steps};

fn plan(options: Options) -> (Arc<StateSpec>, Plan) {
    let mut spec = StateSpec::default();
    let mut cx = PassCx { options, ..PassCx::new(&mut spec, &CpuTarget) };
    let scale_loss = options.precision.is_some_and(|p| p.half == DType::F16);
    let optimizer = Optimizer { scale_loss, ..Optimizer::ADAM };
    let size = Size { batch: 5, text: 7 };
    let graph = program::train(&mut cx, &MODEL, size, Pictures::Bytes, &optimizer).unwrap();
    let graph = pipeline::run(Stage::Whole, "train", graph, &mut cx).unwrap();
    let spec = Arc::new(spec);
    let plan = pipeline::plan("train", &graph, &spec, &CpuTarget).unwrap();
    (spec, plan)
}

/// The launches that are fused, and weights and moments after three steps.
fn trained(options: Options, threads: usize) -> (Vec<String>, Vec<Vec<u8>>) {
    let (spec, plan) = plan(options);
    let names = plan.launches.iter().map(|l| l.op.to_string()).filter(|n| n.starts_with("fused")).collect();
    (names, after_three_steps(&spec, plan, threads))
}

#[test]
fn training_is_the_same_to_the_bit() {
    let half = |half, stream| Some(Precision { half, stream });
    let policies =
        [None, half(DType::Bf16, DType::F32), half(DType::Bf16, DType::Bf16), half(DType::F16, DType::F32)];
    for precision in policies {
        for recompute in [false, true] {
            let options = |fuse| Options { fuse, recompute, precision, ..Options::default() };
            let (fused, on) = trained(options(true), 2);
            let (none, off) = trained(options(false), 1);
            assert!(on == off, "{precision:?}, recompute {recompute}");
            assert!(none.is_empty());
            if precision.is_none() {
                for name in ["fused dropout+add", "fused matmul+gelu"] {
                    assert!(fused.iter().any(|n| n == name), "{name} among {fused:?}");
                }
            }
        }
    }
}

#[test]
fn there_are_fewer_launches_in_no_more_memory() {
    let [(_, on), (_, off)] = [true, false].map(|fuse| plan(Options { fuse, ..Options::default() }));
    assert!(on.launches.len() + 4 <= off.launches.len(), "{} of {}", on.launches.len(), off.launches.len());
    assert!(on.arena_bytes <= off.arena_bytes, "{} of {}", on.arena_bytes, off.arena_bytes);
    assert!(on.cost().1 < off.cost().1 && on.cost().0 == off.cost().0);
}
