//! A small model, rows of data for it, and a state to start from, for tests of whole steps.
#![allow(dead_code)]

use ocelli_cpu::CpuExecutor;
use ocelli_ir::executor::{Executor, Input};
use ocelli_ir::op::{Fill, Gen};
use ocelli_ir::plan::Plan;
use ocelli_ir::reference::RefState;
use ocelli_ir::tensor::{Data, Tensor};
use ocelli_ir::{SlotKind, StateSpec, TensorType};
use ocelli_models::nn::Residual;
use ocelli_models::seemore::SeemoreConfig;
use ocelli_models::smol::SmolConfig;
use ocelli_testkit::host::bytes;
use std::sync::Arc;

/// Its sizes.
pub const MODEL: SeemoreConfig = SeemoreConfig {
    img_size: 8,
    patch_size: 4,
    image_embed_dim: 8,
    num_blks: 1,
    n_embd: 6,
    n_head: 2,
    n_layer: 1,
    vocab_size: 7,
    max_positions: 8,
    dropout: 0.2,
    emb_dropout: 0.2,
    blk_dropout: 0.2,
    residual: Residual::PreNorm,
};

/// The other architecture, with the same inputs.
pub const SMOL: SmolConfig = SmolConfig {
    img_size: 8,
    patch_size: 2,
    image_embed_dim: 8,
    image_n_head: 2,
    image_inner: 12,
    num_blks: 1,
    pixel_shuffle: 2,
    n_embd: 8,
    n_head: 4,
    n_kv_head: 2,
    n_inner: 12,
    n_layer: 1,
    vocab_size: 7,
    max_positions: 8,
    rope_theta: 100.0,
    tie_weights: true,
};

/// One row of data: picture, tokens, targets, weights, with `len` places of text that count.
#[derive(Clone)]
pub struct Row {
    picture: Vec<u8>,
    tokens: Vec<u32>,
    targets: Vec<u32>,
    len: usize,
}

/// Rows with so many places that count.
pub fn rows(lens: &[usize]) -> Vec<Row> {
    let mut draw = Gen::new(3);
    let mut ids = |n| draw.tensor::<f64>(&TensorType::u32([n]), Fill::Below(7)).as_u32().to_vec();
    let row = |&len: &usize| Row {
        picture: ids(8 * 8 * 3).iter().map(|&x| (x * 30) as u8).collect(),
        tokens: ids(7),
        targets: ids(8),
        len,
    };
    lens.iter().map(row).collect()
}

/// Inputs of a program by name.
pub type Inputs = Vec<(String, Tensor<f64>)>;

/// A batch of `b` rows padded to `t`, the first of which is row `first` of the stream; missing rows have no weight.
pub fn batch(rows: &[Row], first: usize, b: usize, t: usize) -> Inputs {
    let blank = Row { picture: vec![0; 8 * 8 * 3], tokens: vec![0; 7], targets: vec![0; 8], len: 0 };
    let row = |i: usize| rows.get(i).unwrap_or(&blank);
    let ids = |f: &dyn Fn(&Row) -> Vec<u32>| (0..b).flat_map(|i| f(row(i))).collect::<Vec<_>>();
    // Places behind a row's end hold whatever padding there is: they have no weight.
    let tokens = ids(&|r| (0..t).map(|j| if j < r.len { r.tokens[j] } else { 6 }).collect());
    let targets = ids(&|r| (0..=t).map(|j| if j <= r.len { r.targets[j] } else { 6 }).collect());
    let counts = |r: &Row, j: usize| if r.len > 0 && j <= r.len { 1.0 } else { 0.0 };
    let weights = (0..b).flat_map(|i| (0..=t).map(move |j| counts(row(i), j))).collect();
    let pictures = (0..b).flat_map(|i| row(i).picture.clone()).collect();
    vec![
        ("images".into(), Tensor { shape: [b, 8, 8, 3].into(), data: Data::U8(pictures) }),
        ("tokens".into(), Tensor::u32([b, t], tokens)),
        ("targets".into(), Tensor::u32([b, t + 1], targets)),
        ("weights".into(), Tensor::real([b, t + 1], weights)),
        ("samples".into(), Tensor::u32([b], (0..b).map(|i| (first + i) as u32).collect())),
    ]
}

/// A state with weights drawn at random.
pub fn start(state: &StateSpec) -> RefState<f64> {
    let mut draw = Gen::new(1);
    let mut fill = |slot: &ocelli_ir::Slot| match (slot.kind, &*slot.name) {
        (SlotKind::Parameter, _) => draw.tensor(&slot.ty, Fill::Range(-0.5, 0.5)),
        (_, "optimizer.lr") => Tensor::real([], vec![0.01]),
        (_, "amp.loss_scale") => Tensor::real([], vec![1024.0]),
        _ => Tensor::zeros(&slot.ty),
    };
    // What is rounded follows.
    let own = state.iter().filter(|(_, slot)| !matches!(slot.kind, SlotKind::Rounded(_)));
    own.map(|(id, slot)| (id, fill(slot))).collect()
}

/// Weights and moments after three steps of a plan made for [`MODEL`], batches of 5 and texts of 7, on the CPU.
pub fn after_three_steps(spec: &Arc<StateSpec>, plan: Plan, threads: usize) -> Vec<Vec<u8>> {
    after_steps(&CpuExecutor::new(Some(threads)).unwrap(), spec, plan, 3)
}

/// Weights and moments after some steps of a plan made for one of the models, batches of 5 and texts of 7.
pub fn after_steps(executor: &dyn Executor, spec: &Arc<StateSpec>, plan: Plan, steps: usize) -> Vec<Vec<u8>> {
    let mut state = executor.new_state(spec, 0).unwrap();
    for (id, tensor) in start(spec) {
        state.write(id, &bytes(&tensor)).unwrap();
    }
    let given = batch(&rows(&[3, 7, 1, 2, 4]), 0, 5, 7);
    let inputs: Vec<Vec<u8>> = (plan.inputs.iter())
        .map(|(name, _)| bytes(&given.iter().find(|(n, _)| n == name).unwrap().1))
        .collect();
    let inputs: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
    let mut program = executor.load(plan).unwrap();
    (0..steps).for_each(|_| program.run(&mut *state, &inputs).unwrap());
    let kept = |kind| matches!(kind, SlotKind::Parameter | SlotKind::Moment);
    spec.iter().filter(|(_, s)| kept(s.kind)).map(|(id, _)| state.read(id).unwrap()).collect()
}
