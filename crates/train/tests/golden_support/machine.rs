//! A golden case on an executor, by the programs that training runs.

use super::{Case, Report};
use ocelli_ir::executor::{Executor, Input, State};
use ocelli_ir::{DType, Graph, StateSpec};
use ocelli_passes::{Options, PassCx, Precision, Stage, pipeline};
use ocelli_testkit::host::{bytes, floats};
use ocelli_testkit::tolerance::Kind;
use ocelli_train::program::COLUMNS;
use std::sync::Arc;

struct Machine<'a> {
    executor: &'a dyn Executor,
    spec: Arc<StateSpec>,
    state: Box<dyn State>,
    inputs: Vec<Vec<u8>>,
    precision: Option<Precision>,
}

impl<'a> Machine<'a> {
    fn new(case: &Case, executor: &'a dyn Executor, precision: Option<Precision>) -> Self {
        let mut spec = case.state.clone();
        passed("train", &case.train, &mut spec, executor, precision);
        let spec = Arc::new(spec);
        let mut state = executor.new_state(&spec, 0).unwrap();
        for (id, slot) in case.state.iter() {
            state.write(id, &bytes(&case.initial(slot))).unwrap();
        }
        let inputs = case.inputs().iter().map(|(_, t)| bytes(t)).collect();
        Self { executor, spec, state, inputs, precision }
    }

    /// Runs a program `times` times; returns its outputs. An executor may do the first time otherwise than all later ones.
    fn run(&mut self, name: &str, graph: &Graph, times: usize) -> Vec<Vec<f64>> {
        let mut spec = (*self.spec).clone();
        let graph = passed(name, graph, &mut spec, self.executor, self.precision);
        assert_eq!(spec.len(), self.spec.len(), "passes added state");
        let plan = pipeline::plan(name, &graph, &self.spec, self.executor.target()).unwrap();
        for launch in &plan.launches {
            let types: Vec<_> = launch.inputs.iter().map(|o| o.ty()).collect();
            assert!(self.executor.target().has_kernel(&launch.op, &types), "{} has no kernel", launch.op);
        }
        let mut program = self.executor.load(plan).unwrap();
        let inputs: Vec<Input<'_>> = self.inputs.iter().map(Input::from).collect();
        for _ in 0..times {
            program.run(&mut *self.state, &inputs).unwrap();
        }
        (0..graph.outputs().len()).map(|i| floats(&program.output(i).unwrap())).collect()
    }

    /// All of the state.
    fn contents(&self) -> Vec<Vec<u8>> {
        self.spec.iter().map(|(id, _)| self.state.read(id).unwrap()).collect()
    }
}

/// A graph behind all passes, which may add to the state.
fn passed(
    name: &str,
    graph: &Graph,
    spec: &mut StateSpec,
    executor: &dyn Executor,
    precision: Option<Precision>,
) -> Graph {
    let mut cx = PassCx::new(spec, executor.target());
    cx.options = Options { precision, ..Options::default() };
    pipeline::run(Stage::Whole, name, graph.clone(), &mut cx).unwrap()
}

/// Everything that a case computed: outputs, and the state after training.
pub type Computed = (Vec<Vec<Vec<f64>>>, Vec<Vec<u8>>);

/// Runs a case in 32 bits on the executor that `what` names; returns its comparison within `bound` and everything computed.
pub fn compare<'a>(
    case: &'a Case,
    what: &str,
    executor: &dyn Executor,
    bound: fn(Kind) -> f64,
) -> (Report<'a>, Computed) {
    compare_in(None, case, what, executor, bound)
}

/// The same in some precision.
pub fn compare_in<'a>(
    precision: Option<Precision>,
    case: &'a Case,
    what: &str,
    executor: &dyn Executor,
    bound: fn(Kind) -> f64,
) -> (Report<'a>, Computed) {
    let mut report = Report::new(case, what, bound);
    let mut machine = Machine::new(case, executor, precision);
    let logits = machine.run("logits", &case.logits, 2);
    report.outputs(&case.logits, &logits);
    let gradients = machine.run("gradients", &case.gradients, 2);
    report.outputs(&case.gradients, &gradients);
    machine.run("train", &case.train, case.steps());
    let ring = floats(&machine.state.read(case.slots.ring).unwrap());
    let rows = ring.chunks(COLUMNS.len()).take(case.steps());
    report.losses(&rows.map(|row| row[0] / row[1]).collect::<Vec<_>>());
    for (id, slot) in case.parameters() {
        assert_eq!(machine.spec.get(id).ty.dtype, DType::F32);
        report.trained(&slot.name, &floats(&machine.state.read(id).unwrap()));
    }
    let contents = machine.contents();
    (report, (vec![logits, gradients], contents))
}
