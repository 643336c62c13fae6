//! Gradient accumulation: k batches of b rows are one batch of k b rows, with captions of unequal lengths, rows of
//! weight 0 and padding of another length in each.

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::executor::Executor;
use ocelli_ir::op::{Fill, Gen};
use ocelli_ir::reference::{RefState, evaluate};
use ocelli_ir::tensor::{Data, Tensor};
use ocelli_ir::{DType, Graph, SlotKind, StateSpec, TensorType};
use ocelli_models::nn::Residual;
use ocelli_models::seemore::SeemoreConfig;
use ocelli_passes::{PassCx, Stage, pipeline};
use ocelli_testkit::host::{bytes, floats};
use ocelli_testkit::tolerance::{Kind, f32_bound, relative_difference};
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::collections::HashMap;
use std::sync::Arc;

const MODEL: SeemoreConfig = SeemoreConfig {
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

/// One row of data: picture, tokens, targets, weights, with `len` places of text that count.
#[derive(Clone)]
struct Row {
    picture: Vec<u8>,
    tokens: Vec<u32>,
    targets: Vec<u32>,
    len: usize,
}

fn rows(lens: &[usize]) -> Vec<Row> {
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

type Inputs = Vec<(String, Tensor<f64>)>;

/// A batch of `b` rows padded to `t`, the first of which is row `first` of the stream; missing rows have no weight.
fn batch(rows: &[Row], first: usize, b: usize, t: usize) -> Inputs {
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

fn optimizer(batches: usize) -> Optimizer {
    Optimizer { batches, clip: Some(0.5), weight_decay: 0.1, ..Optimizer::ADAM }
}

/// A program to run, and the inputs of the run.
type Run = (&'static str, Graph, Inputs);

/// Five rows as one batch, and as a window of three batches of two, the last of them half empty.
fn scripts(state: &mut StateSpec) -> [Vec<Run>; 2] {
    let rows = rows(&[3, 7, 1, 2, 4]);
    let mut cx = PassCx::new(state, &CpuTarget);
    let mut build = |size: Size, batches: usize, run: &'static str| {
        let made = match run {
            "train" => program::train(&mut cx, &MODEL, size, Pictures::Bytes, &optimizer(batches)),
            "accumulate" => program::accumulate(&mut cx, &MODEL, size, Pictures::Bytes),
            _ => program::apply(&mut cx, &optimizer(batches)),
        };
        pipeline::run(Stage::Whole, run, made.unwrap(), &mut cx).unwrap()
    };
    let one = build(Size { batch: 5, text: 7 }, 1, "train");
    let mut parts = Vec::new();
    for (first, text) in [(0, 7), (2, 3), (4, 4)] {
        let g = build(Size { batch: 2, text }, 3, "accumulate");
        parts.push(("accumulate", g, batch(&rows[first..rows.len().min(first + 2)], first, 2, text)));
    }
    parts.push(("apply", build(Size { batch: 1, text: 1 }, 3, "apply"), vec![]));
    [vec![("train", one, batch(&rows, 0, 5, 7))], parts]
}

fn start(state: &StateSpec) -> RefState<f64> {
    let mut draw = Gen::new(1);
    let mut fill = |slot: &ocelli_ir::Slot| match (slot.kind, &*slot.name) {
        (SlotKind::Parameter, _) => draw.tensor(&slot.ty, Fill::Range(-0.5, 0.5)),
        (_, "optimizer.lr") => Tensor::real([], vec![0.01]),
        _ => Tensor::zeros(&slot.ty),
    };
    state.iter().map(|(id, slot)| (id, fill(slot))).collect()
}

#[test]
fn batches_of_a_window_are_one_batch_in_f64() {
    let mut spec = StateSpec::default();
    let [one, window] = scripts(&mut spec);
    let run = |script: &[Run]| {
        let mut state = start(&spec);
        for step in 0..3 {
            for (name, graph, inputs) in script {
                let inputs: HashMap<_, _> = inputs.iter().cloned().collect();
                evaluate(graph, &inputs, &mut state).unwrap_or_else(|e| panic!("{name} {step}: {e}"));
            }
        }
        state
    };
    let (a, b) = (run(&one), run(&window));
    for (id, slot) in spec.iter() {
        match (slot.kind, &a[&id].data, &b[&id].data) {
            // Three batches a step instead of one.
            (SlotKind::Counter, Data::U32(a), Data::U32(b)) if slot.name == "data.batches" => {
                assert_eq!((a[0], b[0]), (3, 9));
            }
            (SlotKind::Accumulator, _, Data::Real(b)) => {
                assert!(b.iter().all(|x| *x == 0.0), "{}", slot.name)
            }
            (_, Data::Real(a), Data::Real(b)) => assert!(relative_difference(a, b) < 1e-10, "{}", slot.name),
            (_, a, b) => assert_eq!(a, b, "{}", slot.name),
        }
    }
    let moved =
        spec.iter().filter(|(_, s)| s.kind == SlotKind::Parameter).all(|(id, _)| a[&id] != start(&spec)[&id]);
    assert!(moved, "every parameter was trained");
}

#[test]
fn batches_of_a_window_are_one_batch_on_the_cpu() {
    let mut spec = StateSpec::default();
    let scripts = scripts(&mut spec);
    let spec = Arc::new(spec);
    let executor = CpuExecutor::new(Some(2)).unwrap();
    let [a, b] = scripts.map(|script| {
        let mut state = executor.new_state(&spec, 0).unwrap();
        for (id, tensor) in start(&spec) {
            state.write(id, &bytes(&tensor)).unwrap();
        }
        for (name, graph, inputs) in &script {
            let plan = pipeline::plan(name, graph, &spec, executor.target()).unwrap();
            let inputs: Vec<Vec<u8>> = (plan.inputs.iter())
                .map(|(name, _)| bytes(&inputs.iter().find(|(n, _)| n == name).unwrap().1))
                .collect();
            let inputs: Vec<&[u8]> = inputs.iter().map(|b| &b[..]).collect();
            executor.load(plan).unwrap().run(&mut *state, &inputs).unwrap();
        }
        state
    });
    for (id, slot) in spec.iter().filter(|(_, s)| s.kind == SlotKind::Moment && s.ty.dtype == DType::F32) {
        let (a, b): (Vec<f64>, Vec<f64>) = (floats(&a.read(id).unwrap()), floats(&b.read(id).unwrap()));
        assert!(relative_difference(&a, &b) < f32_bound(Kind::Gradient), "{}", slot.name);
    }
}
