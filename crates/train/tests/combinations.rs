//! Every combination of the passes' switches, on both architectures: programs that the verifier accepts, and that learn.

mod step_support;

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::executor::{Executor, Input};
use ocelli_ir::{DType, StateSpec};
use ocelli_models::Model;
use ocelli_passes::{Options, PassCx, Precision, Stage, pipeline};
use ocelli_testkit::host::{bytes, floats};
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::sync::Arc;
use step_support::{MODEL, SMOL, batch, rows, start};

const SIZE: Size = Size { batch: 5, text: 7 };

/// Mean loss of the first and the last of 30 steps on one batch.
fn losses(model: &dyn Model, options: Options, batches: usize) -> [f64; 2] {
    let mut spec = StateSpec::default();
    let mut cx = PassCx { options, ..PassCx::new(&mut spec, &CpuTarget) };
    let scale_loss = options.precision.is_some_and(|p| p.half == DType::F16);
    let optimizer = Optimizer { scale_loss, batches, ..Optimizer::ADAM };
    let mut graphs = Vec::new();
    if batches > 1 {
        graphs.push(program::accumulate(&mut cx, model, SIZE, Pictures::Bytes, &optimizer).unwrap());
        graphs.push(program::apply(&mut cx, &optimizer).unwrap());
    } else {
        graphs.push(program::train(&mut cx, model, SIZE, Pictures::Bytes, &optimizer).unwrap());
    }
    let graphs: Vec<_> =
        graphs.into_iter().map(|g| pipeline::run(Stage::Whole, "test", g, &mut cx).unwrap()).collect();
    let spec = Arc::new(spec);
    let executor = CpuExecutor::new(Some(1)).unwrap();
    let mut state = executor.new_state(&spec, 0).unwrap();
    for (id, tensor) in start(&spec) {
        state.write(id, &bytes(&tensor)).unwrap();
    }
    let given = batch(&rows(&[3, 7, 1, 2, 4]), 0, SIZE.batch, SIZE.text);
    let mut programs: Vec<_> = graphs
        .iter()
        .map(|g| executor.load(pipeline::plan("test", g, &spec, &CpuTarget).unwrap()).unwrap())
        .collect();
    for step in 0..30 * batches {
        let ends = (step + 1) % batches == 0;
        for program in programs.iter_mut().take(if ends { 2 } else { 1 }) {
            let inputs: Vec<Vec<u8>> = (program.plan().inputs.iter())
                .map(|(name, _)| bytes(&given.iter().find(|(n, _)| n == name).unwrap().1))
                .collect();
            program.run(&mut *state, &inputs.iter().map(Input::from).collect::<Vec<_>>()).unwrap();
        }
    }
    let ring = floats(&state.read(spec.find("metrics.ring").unwrap()).unwrap());
    [0, 29].map(|row| {
        let row = &ring[row * program::COLUMNS.len()..];
        row[0] / row[1]
    })
}

#[test]
fn every_combination_of_passes_is_a_program_that_learns() {
    let half = |half, stream| Some(Precision { half, stream });
    let policies =
        [None, half(DType::Bf16, DType::F32), half(DType::Bf16, DType::Bf16), half(DType::F16, DType::F32)];
    let models: [&dyn Model; 2] = [&MODEL, &SMOL];
    for (i, model) in models.into_iter().enumerate() {
        let mut first_of = None;
        for precision in policies {
            for (recompute, row_slice, batches) in
                [(false, false, 1), (true, false, 1), (false, true, 2), (true, true, 1), (true, true, 3)]
            {
                for (fuse, flash_attention) in [(false, false), (false, true), (true, false), (true, true)] {
                    let options = Options { row_slice, flash_attention, recompute, fuse, precision };
                    let [first, last] = losses(model, options, batches);
                    let what = format!("model {i}, {options:?}, {batches} batches: {first} to {last}");
                    let begin = *first_of.get_or_insert(first);
                    assert!((first - begin).abs() < 0.05 * begin, "{what}, not from {begin}");
                    assert!(last < 0.85 * first, "{what}");
                }
            }
        }
    }
}
