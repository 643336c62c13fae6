//! Pass `recompute` on whole training steps: the same bits, less memory.

mod step_support;

use ocelli_cpu::CpuTarget;
use ocelli_ir::plan::Plan;
use ocelli_ir::{DType, StateSpec};
use ocelli_models::seemore::SeemoreConfig;
use ocelli_passes::{Options, PassCx, Precision, Stage, pipeline};
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::sync::Arc;
use step_support::{MODEL, after_three_steps};

fn plan(
    model: &SeemoreConfig,
    size: Size,
    recompute: bool,
    precision: Option<Precision>,
) -> (Arc<StateSpec>, Plan) {
    let mut spec = StateSpec::default();
    let options = Options { recompute, precision, ..Options::default() };
    let mut cx = PassCx { options, ..PassCx::new(&mut spec, &CpuTarget) };
    let graph = program::train(&mut cx, model, size, Pictures::Bytes, &Optimizer::ADAM).unwrap();
    let graph = pipeline::run(Stage::Whole, "train", graph, &mut cx).unwrap();
    let spec = Arc::new(spec);
    let plan = pipeline::plan("train", &graph, &spec, &CpuTarget).unwrap();
    (spec, plan)
}

/// Weights and moments after three steps.
fn trained(recompute: bool) -> Vec<Vec<u8>> {
    let (spec, plan) = plan(&MODEL, Size { batch: 5, text: 7 }, recompute, None);
    after_three_steps(&spec, plan, 2)
}

#[test]
fn training_is_the_same_to_the_bit() {
    assert!(trained(true) == trained(false));
}

#[test]
fn memory_is_less_and_products_are_not_made_twice() {
    let model = SeemoreConfig {
        img_size: 32,
        patch_size: 8,
        image_embed_dim: 64,
        num_blks: 4,
        n_embd: 64,
        n_head: 4,
        n_layer: 4,
        max_positions: 40,
        ..MODEL
    };
    let size = Size { batch: 8, text: 32 };
    for precision in [None, Some(Precision { half: DType::Bf16, stream: DType::F32 })] {
        let [(_, kept), (_, again)] = [false, true].map(|on| plan(&model, size, on, precision));
        let products = |p: &Plan| p.launches.iter().filter(|l| !l.op.operands().is_empty()).count();
        assert_eq!(products(&kept), products(&again));
        assert!(again.launches.len() > kept.launches.len());
        let share = again.arena_bytes as f64 / kept.arena_bytes as f64;
        assert!(share < 0.8, "{precision:?}: {} of {} bytes", again.arena_bytes, kept.arena_bytes);
    }
}
