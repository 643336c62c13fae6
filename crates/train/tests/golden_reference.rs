//! Goldens on the reference evaluation: logits, features, losses, gradients and trained weights as PyTorch has
//! them, in f64 and in f32.

mod golden_support;

use golden_support::{Case, Report};
use ocelli_ir::reference::{RefState, evaluate};
use ocelli_ir::tensor::{Real, Tensor};
use ocelli_testkit::golden;
use ocelli_testkit::tolerance::{F64_BOUND, Kind, f32_bound};
use ocelli_train::program::COLUMNS;
use std::collections::HashMap;

struct Reference<R> {
    state: RefState<R>,
    inputs: HashMap<String, Tensor<R>>,
}

impl<R: Real> Reference<R> {
    fn new(case: &Case) -> Self {
        let state = case.state.iter().map(|(id, slot)| (id, case.initial(slot).to())).collect();
        Self { state, inputs: case.inputs().into_iter().map(|(n, t)| (n, t.to())).collect() }
    }

    fn run(&mut self, graph: &ocelli_ir::Graph) -> Vec<Vec<f64>> {
        let out = evaluate(graph, &self.inputs, &mut self.state).unwrap();
        out.iter().map(|t| t.as_real().iter().map(|x| x.f64()).collect()).collect()
    }
}

fn check<R: Real>(case: &Case, bound: impl Fn(Kind) -> f64) {
    let mut report = Report::new(case, std::any::type_name::<R>(), bound);
    let mut machine = Reference::<R>::new(case);
    report.outputs(&case.logits, &machine.run(&case.logits));
    report.outputs(&case.gradients, &machine.run(&case.gradients));
    let ring = case.slots.ring;
    let mut losses = Vec::new();
    for step in 0..case.steps() {
        machine.run(&case.train);
        let ring = machine.state[&ring].as_real();
        let row: Vec<f64> = ring[COLUMNS.len() * step..][..2].iter().map(|x| x.f64()).collect();
        losses.push(row[0] / row[1]);
    }
    report.losses(&losses);
    for (id, slot) in case.parameters() {
        let have: Vec<f64> = machine.state[&id].as_real().iter().map(|x| x.f64()).collect();
        report.trained(&slot.name, &have);
    }
    report.finish();
}

#[test]
fn golden_cases_on_the_reference_evaluation() {
    // The reference evaluation takes minutes at the published size, which the executor's test covers.
    for g in golden::all().iter().filter(|g| g.config.image_embed_dim <= 64) {
        let case = Case::new(g);
        check::<f64>(&case, |kind| if kind == Kind::Trained { 1e-5 } else { F64_BOUND });
        check::<f32>(&case, f32_bound);
    }
}
