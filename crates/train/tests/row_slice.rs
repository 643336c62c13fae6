//! Pass `row_slice` on whole training steps: the same gradients, less work.

use ocelli_cpu::CpuTarget;
use ocelli_ir::op::{Fill, Gen};
use ocelli_ir::reference::{RefState, evaluate};
use ocelli_ir::tensor::Tensor;
use ocelli_ir::{DType, Graph, SlotKind, StateSpec, TensorType};
use ocelli_models::nn::Residual;
use ocelli_models::seemore::SeemoreConfig;
use ocelli_passes::{Options, PassCx};
use ocelli_testkit::tolerance::relative_difference;
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::collections::HashMap;

const SMALL: SeemoreConfig = SeemoreConfig {
    img_size: 12,
    patch_size: 4,
    image_embed_dim: 8,
    num_blks: 2,
    n_embd: 6,
    n_head: 2,
    n_layer: 1,
    vocab_size: 7,
    max_positions: 6,
    dropout: 0.0,
    emb_dropout: 0.0,
    blk_dropout: 0.0,
    residual: Residual::Published,
};

fn cx(state: &mut StateSpec, row_slice: bool) -> PassCx<'_> {
    PassCx { options: Options { row_slice, ..Options::default() }, ..PassCx::new(state, &CpuTarget) }
}

fn flops(g: &Graph) -> u64 {
    let types =
        |values: &[ocelli_ir::Value]| values.iter().map(|&v| g.ty(v).clone()).collect::<Vec<TensorType>>();
    g.nodes()
        .iter()
        .map(|n| {
            let (ins, outs) = (types(&n.inputs), types(&n.outputs));
            n.op.flops(&ins.iter().collect::<Vec<_>>(), &outs.iter().collect::<Vec<_>>())
        })
        .sum()
}

/// Loss, weight and gradients in f64, with the pass on or off.
fn gradients(model: &SeemoreConfig, row_slice: bool) -> (Vec<Vec<f64>>, u64) {
    let mut state = StateSpec::default();
    let size = Size { batch: 3, text: 4 };
    let g = program::mean_gradients(&mut cx(&mut state, row_slice), model, size, Pictures::Bytes).unwrap();
    let mut draw = Gen::new(5);
    let ids = |draw: &mut Gen, t| draw.tensor(&TensorType::u32([3, t]), Fill::Below(7));
    let images = TensorType::new(DType::U8, [3, 12, 12, 3]);
    let inputs: HashMap<String, Tensor<f64>> = HashMap::from([
        ("images".into(), draw.tensor(&images, Fill::Below(256))),
        ("tokens".into(), ids(&mut draw, 4)),
        ("targets".into(), ids(&mut draw, 5)),
        ("weights".into(), draw.tensor(&TensorType::f32([3, 5]), Fill::Range(0.0, 1.0))),
        ("samples".into(), Tensor::u32([3], vec![0, 1, 2])),
    ]);
    let mut contents: RefState<f64> = HashMap::new();
    for (id, slot) in state.iter().filter(|(_, s)| s.kind == SlotKind::Parameter) {
        contents.insert(id, draw.tensor(&slot.ty, Fill::Normal));
    }
    let out = evaluate(&g, &inputs, &mut contents).unwrap();
    (out.iter().map(|t| t.as_real().to_vec()).collect(), flops(&g))
}

#[test]
fn gradients_are_the_same_with_and_without() {
    for residual in [Residual::Published, Residual::PreNorm] {
        let model = SeemoreConfig { residual, ..SMALL };
        let ((with, less), (without, more)) = (gradients(&model, true), gradients(&model, false));
        assert!(less < more, "{less} {more}");
        for (a, b) in with.iter().zip(&without) {
            assert!(relative_difference(a, b) < 1e-12, "{residual:?}");
        }
    }
}

/// Dropout acts on the rows that are left as it did on them among all.
#[test]
fn dropped_elements_are_the_same_with_and_without() {
    let model = SeemoreConfig { emb_dropout: 0.3, blk_dropout: 0.3, ..SMALL };
    let losses = [true, false].map(|on| {
        let mut state = StateSpec::default();
        let (size, optimizer) = (Size { batch: 3, text: 4 }, Optimizer::ADAM);
        let g = program::train(&mut cx(&mut state, on), &model, size, Pictures::Bytes, &optimizer).unwrap();
        let mut draw = Gen::new(9);
        let mut inputs: HashMap<String, Tensor<f64>> = HashMap::new();
        for node in g.nodes() {
            if let ocelli_ir::Op::Input(op) = &node.op {
                let fill = if op.ty.dtype == DType::F32 { Fill::Range(0.0, 1.0) } else { Fill::Below(7) };
                inputs.insert(op.name.to_string(), draw.tensor(&op.ty, fill));
            }
        }
        let mut contents: RefState<f64> = HashMap::new();
        for (id, slot) in state.iter() {
            let normal = slot.kind == SlotKind::Parameter;
            contents.insert(
                id,
                if normal { draw.tensor(&slot.ty, Fill::Normal) } else { Tensor::zeros(&slot.ty) },
            );
        }
        evaluate(&g, &inputs, &mut contents).unwrap();
        let ring = state.find("metrics.ring").unwrap();
        contents[&ring].as_real()[..3].to_vec()
    });
    assert!(losses[0][0] > 0.0 && losses[0][2] > 0.0);
    assert!(relative_difference(&losses[0], &losses[1]) < 1e-12, "{losses:?}");
}

/// The last vision block at one position of 37: its attention, projection, norm and feed-forward part, forward and
/// backward.
#[test]
fn the_published_model_saves_a_fifth_of_its_work() {
    let published = SeemoreConfig {
        img_size: 96,
        patch_size: 16,
        image_embed_dim: 512,
        num_blks: 3,
        n_embd: 128,
        n_head: 8,
        n_layer: 8,
        vocab_size: 78,
        max_positions: 1000,
        dropout: 0.1,
        emb_dropout: 0.1,
        blk_dropout: 0.1,
        residual: Residual::Published,
    };
    let work = [true, false].map(|on| {
        let mut state = StateSpec::default();
        let (size, optimizer) = (Size { batch: 16, text: 64 }, Optimizer::ADAM);
        flops(
            &program::train(&mut cx(&mut state, on), &published, size, Pictures::Bytes, &optimizer).unwrap(),
        )
    });
    println!(
        "published, batch 16, 64 tokens: {:.2} GFLOP instead of {:.2}",
        work[0] as f64 / 1e9,
        work[1] as f64 / 1e9
    );
    assert!((work[0] as f64) < 0.83 * work[1] as f64, "{work:?}");
}
