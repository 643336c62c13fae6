//! Gradient accumulation: k batches of b rows are one batch of k b rows, with captions of unequal lengths, rows of
//! weight 0 and padding of another length in each.

mod step_support;

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::executor::{Executor, Input};
use ocelli_ir::reference::evaluate;
use ocelli_ir::tensor::Data;
use ocelli_ir::{DType, Graph, SlotKind, StateSpec};
use ocelli_passes::{PassCx, Stage, pipeline};
use ocelli_testkit::host::{bytes, floats};
use ocelli_testkit::tolerance::{Kind, f32_bound, relative_difference};
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::collections::HashMap;
use std::sync::Arc;
use step_support::{Inputs, MODEL, batch, rows, start};

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
            "accumulate" => program::accumulate(&mut cx, &MODEL, size, Pictures::Bytes, &optimizer(batches)),
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
            let inputs: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
            executor.load(plan).unwrap().run(&mut *state, &inputs).unwrap();
        }
        state
    });
    for (id, slot) in spec.iter().filter(|(_, s)| s.kind == SlotKind::Moment && s.ty.dtype == DType::F32) {
        let (a, b): (Vec<f64>, Vec<f64>) = (floats(&a.read(id).unwrap()), floats(&b.read(id).unwrap()));
        assert!(relative_difference(&a, &b) < f32_bound(Kind::Gradient), "{}", slot.name);
    }
}
