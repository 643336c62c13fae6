//! Attention by its plain definition (`flash_attention` off) in whole training steps: the same gradients as the op, dropped
//! elements included, on the CPU and on a GPU; and a GPU has kernels for all of it, however numbers are stored.

mod step_support;

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_cuda::{CudaExecutor, CudaOptions, CudaTarget, Machine, NvrtcFault, compile, kernel_sources};
use ocelli_ir::executor::{Executor, Target};
use ocelli_ir::plan::Plan;
use ocelli_ir::{DType, Op, SlotKind, StateSpec};
use ocelli_models::Model;
use ocelli_passes::{Options, PassCx, Precision, Stage, pipeline};
use ocelli_testkit::host::floats;
use ocelli_testkit::tolerance::{Kind, f32_bound, gpu_f32_bound};
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::collections::BTreeSet;
use std::sync::Arc;
use step_support::{MODEL, SMOL, after_steps};

const MODELS: [&dyn Model; 2] = [&MODEL, &SMOL];

fn plan(model: &dyn Model, options: Options, target: &dyn Target) -> (Arc<StateSpec>, Plan) {
    let mut spec = StateSpec::default();
    let mut cx = PassCx { options, ..PassCx::new(&mut spec, target) };
    let scale_loss = options.precision.is_some_and(|p| p.half == DType::F16);
    let optimizer = Optimizer { scale_loss, ..Optimizer::ADAM };
    let size = Size { batch: 5, text: 7 };
    let graph = program::train(&mut cx, model, size, Pictures::Bytes, &optimizer).unwrap();
    let graph = pipeline::run(Stage::Whole, "train", graph, &mut cx).unwrap();
    let spec = Arc::new(spec);
    let plan = pipeline::plan("train", &graph, &spec, target).unwrap();
    (spec, plan)
}

/// True for what [`after_steps`] gives.
fn is_kept(kind: SlotKind) -> bool {
    matches!(kind, SlotKind::Parameter | SlotKind::Moment)
}

fn is_attention(op: &Op) -> bool {
    matches!(op, Op::Attention(_) | Op::AttentionGrad(_))
}

/// Gradients, as a step's moments have them, with attention as one op and by its plain definition: the largest difference, as
/// a share of each tensor's largest number. A tensor of nothing but rounding compares with a thousandth of the largest of all.
fn difference(executor: &dyn Executor, model: &dyn Model, options: Options) -> f64 {
    let [flash, plain] = [true, false].map(|flash_attention| {
        let (spec, plan) = plan(model, Options { flash_attention, ..options }, executor.target());
        assert_eq!(plan.launches.iter().any(|l| is_attention(&l.op)), flash_attention);
        let kinds = spec.iter().map(|(_, slot)| slot.kind).filter(|k| is_kept(*k));
        let tensors = kinds.zip(after_steps(executor, &spec, plan, 1));
        tensors.filter(|(k, _)| *k == SlotKind::Moment).map(|(_, b)| floats(&b)).collect::<Vec<_>>()
    });
    let largest = |t: &[f64]| t.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let of_all = flash.iter().map(|t| largest(t)).fold(0.0, f64::max);
    let apart = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        let most = a.iter().zip(b).fold(0.0_f64, |m, (x, y)| m.max((x - y).abs()));
        most / largest(a).max(1e-3 * of_all)
    };
    flash.iter().zip(&plain).map(apart).fold(0.0, f64::max)
}

#[test]
fn a_step_is_the_same_on_the_cpu() {
    let cpu = CpuExecutor::new(Some(2)).unwrap();
    for (i, model) in MODELS.into_iter().enumerate() {
        for (row_slice, recompute, fuse) in [(true, false, true), (false, true, false)] {
            let options = Options { row_slice, recompute, fuse, ..Options::default() };
            let off = difference(&cpu, model, options);
            // A step that differed in one dropped weight would be off by percents.
            assert!(off > 0.0 && off < 10.0 * f32_bound(Kind::Gradient), "model {i}, {options:?}: {off:.1e}");
        }
    }
}

#[test]
fn a_step_is_the_same_on_a_gpu() {
    let gpu = match CudaExecutor::new(CudaOptions::default()) {
        Ok(gpu) => gpu,
        Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
            return println!("skipped: no CUDA device ({e})");
        }
        Err(e) => panic!("no CUDA device: {e}"),
    };
    let half = |half, stream| Some(Precision { half, stream });
    for (i, model) in MODELS.into_iter().enumerate() {
        for fuse in [false, true] {
            for (precision, bound) in [
                (None, 10.0 * gpu_f32_bound(Kind::Gradient)),
                // Gradients of single weights, through scores stored in 16 bits.
                (half(DType::Bf16, DType::F32), 0.3),
                (half(DType::F16, DType::F32), 0.05),
            ] {
                let options = Options { fuse, precision, ..Options::default() };
                let off = difference(&gpu, model, options);
                assert!(off < bound, "model {i}, {options:?}: {off:.1e}");
            }
        }
    }
}

/// Needs no GPU. Where the compiler (NVRTC) is there too, the kernels that only plain attention has compile.
#[test]
fn a_gpu_has_kernels_for_plain_attention() {
    const MACHINE: Machine = Machine::new(132);
    let half = |half, stream| Some(Precision { half, stream });
    let [mut flash, mut plain] = [const { BTreeSet::new() }; 2];
    for model in MODELS {
        for precision in [
            None,
            half(DType::Bf16, DType::F32),
            half(DType::Bf16, DType::Bf16),
            half(DType::F16, DType::F32),
        ] {
            for (recompute, fuse) in [(false, true), (true, false)] {
                for (flash_attention, all) in [(true, &mut flash), (false, &mut plain)] {
                    let options =
                        Options { flash_attention, precision, recompute, fuse, ..Options::default() };
                    let (_, plan) = plan(model, options, &CudaTarget::new(MACHINE));
                    all.extend(kernel_sources(&plan, MACHINE).unwrap());
                }
            }
        }
    }
    if let Err(NvrtcFault::Missing(why)) = compile("", "sm_80") {
        return println!("skipped: {why}");
    }
    let only: Vec<&String> = plain.difference(&flash).collect();
    assert!(only.len() > 20, "{}", only.len());
    // Every tenth, and dropout: each is one of a few, at other extents.
    let dropout = only.iter().filter(|s| s.contains("const u32 word = dropout_word")).take(1);
    for source in only.iter().step_by(10).chain(dropout) {
        compile(source, "sm_80").unwrap();
    }
}

/// What the switch is for: with it no number is kept for each pair of query and key.
#[test]
fn flash_attention_keeps_no_pairs() {
    let [flash, plain] = [true, false]
        .map(|flash_attention| plan(&SMOL, Options { flash_attention, ..Options::default() }, &CpuTarget).1);
    // 5 rows, 4 heads, 4 tokens of the picture and 7 of text.
    let pairs = 5 * 4 * 11 * 11;
    let keeps =
        |plan: &Plan| plan.launches.iter().flat_map(|l| &l.outputs).any(|o| o.view.shape.numel() == pairs);
    assert!(!keeps(&flash) && keeps(&plain));
}
