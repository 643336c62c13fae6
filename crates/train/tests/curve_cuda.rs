//! A training curve on the GPU beside PyTorch's, from the same weights on the same batches: in f32, TF32 and bf16 without
//! dropout, and with dropout between the curves of PyTorch's seeds. `OCELLI_CURVE` names the file that `scripts/make_curve.py`
//! made; without it, or without a GPU, the test says that it is skipped.

mod golden_support;

use golden_support::Case;
use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_ir::DType;
use ocelli_ir::executor::{Executor, Input};
use ocelli_passes::{Options, PassCx, Precision, Stage, pipeline};
use ocelli_testkit::golden::Golden;
use ocelli_testkit::host::{bytes, floats};
use ocelli_train::program::COLUMNS;
use std::path::Path;
use std::sync::Arc;

/// Steps whose mean is compared: every batch three times.
const WINDOW: usize = 24;

/// The curve's cases, one for each batch, with this dropout.
fn cases(curve: &Golden, dropout: f64) -> Vec<Case> {
    let batches = (0..).take_while(|k| curve.find(&format!("in.images.{k}")).is_some());
    let case = |k: usize| {
        let mut g = curve.clone();
        for name in ["in.images", "in.tokens", "in.targets"] {
            g.copy(&format!("{name}.{k}"), name);
        }
        g.config.dropout = dropout;
        Case::new(&g)
    };
    batches.map(case).collect()
}

/// Our losses, step by step.
fn train(cases: &[Case], tf32: bool, precision: Option<Precision>) -> Vec<f64> {
    let executor = CudaExecutor::new(CudaOptions { tf32, ..CudaOptions::default() }).unwrap();
    let case = &cases[0];
    let mut grown = case.state.clone();
    let mut cx = PassCx::new(&mut grown, executor.target());
    cx.options = Options { precision, ..Options::default() };
    let graph = pipeline::run(Stage::Whole, "train", case.train.clone(), &mut cx).unwrap();
    let spec = Arc::new(grown);
    let mut state = executor.new_state(&spec, 0).unwrap();
    for (id, slot) in case.state.iter() {
        state.write(id, &bytes(&case.initial(slot))).unwrap();
    }
    let plan = pipeline::plan("train", &graph, &spec, executor.target()).unwrap();
    let mut program = executor.load(plan).unwrap();
    let batches: Vec<Vec<Vec<u8>>> =
        cases.iter().map(|c| c.inputs().iter().map(|(_, t)| bytes(t)).collect()).collect();
    for step in 0..case.steps() {
        let inputs: Vec<Input<'_>> = batches[step % batches.len()].iter().map(Input::from).collect();
        program.run(&mut *state, &inputs).unwrap();
    }
    let ring = floats(&state.read(case.slots.ring).unwrap());
    ring.chunks(COLUMNS.len()).take(case.steps()).map(|row| row[0] / row[1]).collect()
}

/// Means of [`WINDOW`] steps, one behind the other.
fn means(losses: &[f64]) -> Vec<f64> {
    losses.chunks_exact(WINDOW).map(|w| w.iter().sum::<f64>() / WINDOW as f64).collect()
}

#[test]
fn training_follows_pytorch() {
    let Some(path) = std::env::var_os("OCELLI_CURVE") else {
        println!("skipped: OCELLI_CURVE names no curve");
        return;
    };
    let curve = Golden::load(Path::new(&path)).unwrap();
    let want = means(curve.get("train.losses").1);
    let first = want[0];
    let plain = cases(&curve, 0.0);
    let bf16 = Some(Precision { half: DType::Bf16, stream: DType::Bf16 });
    // Runs that round differently drift apart while the loss falls fast, and meet again.
    for (name, tf32, precision, bound) in
        [("f32", false, None, 0.04), ("tf32", true, None, 0.06), ("bf16", false, bf16, 0.06)]
    {
        let have = means(&train(&plain, tf32, precision));
        let off = have.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / first;
        println!(
            "{name}: {first:.3} -> {:.4} (PyTorch {:.4}), at most {:.2} % of the first loss apart",
            have[have.len() - 1],
            want[want.len() - 1],
            off * 100.0
        );
        assert!(off <= bound, "{name} leaves PyTorch's curve");
        // It is a curve, and one that the bound can tell from another.
        assert!(have[have.len() - 1] < 0.8 * first);
    }
    let (shape, all) = curve.get("dropout.losses");
    let seeds: Vec<Vec<f64>> = all.chunks(shape[1]).map(means).collect();
    let have = means(&train(&cases(&curve, 0.1), false, bf16));
    for (i, a) in have.iter().enumerate() {
        let (low, high) = seeds.iter().fold((f64::MAX, f64::MIN), |(l, h), s| (l.min(s[i]), h.max(s[i])));
        let room = (high - low).max(0.01 * first);
        assert!(
            (low - room..=high + room).contains(a),
            "steps from {}: {a} is not near {low} to {high}",
            i * WINDOW
        );
    }
    println!(
        "bf16 with dropout: {:.4}, PyTorch's seeds {:?}",
        have[have.len() - 1],
        seeds.iter().map(|s| s[s.len() - 1]).collect::<Vec<_>>()
    );
}
