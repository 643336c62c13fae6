//! Goldens on the CPU executor, in f32, with one thread and with two: equal to PyTorch within the bounds, and to
//! each other bit for bit. The programs are those that training runs.

mod golden_support;

use golden_support::{Case, Report};
use ocelli_cpu::CpuExecutor;
use ocelli_ir::executor::{Executor, State};
use ocelli_ir::{DType, Graph, StateSpec};
use ocelli_passes::compile;
use ocelli_testkit::golden;
use ocelli_testkit::host::{bytes, floats};
use ocelli_testkit::tolerance::{Kind, f32_bound};
use ocelli_train::program::COLUMNS;
use std::sync::Arc;

struct Machine {
    executor: CpuExecutor,
    spec: Arc<StateSpec>,
    state: Box<dyn State>,
    inputs: Vec<Vec<u8>>,
}

impl Machine {
    fn new(case: &Case, threads: usize) -> Self {
        let executor = CpuExecutor::new(Some(threads)).unwrap();
        let spec = Arc::new(case.state.clone());
        let mut state = executor.new_state(&spec, 0).unwrap();
        for (id, slot) in spec.iter() {
            state.write(id, &bytes(&case.initial(slot))).unwrap();
        }
        let inputs = case.inputs().iter().map(|(_, t)| bytes(t)).collect();
        Self { executor, spec, state, inputs }
    }

    /// Runs a program `times` times; returns its outputs.
    fn run(&mut self, name: &str, graph: &Graph, times: usize) -> Vec<Vec<f64>> {
        let plan = compile(name, graph.clone(), &self.spec, self.executor.target()).unwrap();
        for launch in &plan.launches {
            let types: Vec<_> = launch.inputs.iter().map(|o| o.ty()).collect();
            assert!(self.executor.target().has_kernel(&launch.op, &types), "{} has no kernel", launch.op);
        }
        let mut program = self.executor.load(plan).unwrap();
        let inputs: Vec<&[u8]> = self.inputs.iter().map(|b| &b[..]).collect();
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

/// Everything that a case computed: outputs, and the state after training.
type Computed = (Vec<Vec<Vec<f64>>>, Vec<Vec<u8>>);

/// Runs a case; returns its comparison and everything computed.
fn compare(case: &Case, threads: usize) -> (Report<'_>, Computed) {
    let mut report = Report::new(case, &format!("cpu {threads} threads"), f32_bound);
    let mut machine = Machine::new(case, threads);
    let logits = machine.run("logits", &case.logits, 1);
    report.outputs(&case.logits, &logits);
    let gradients = machine.run("gradients", &case.gradients, 1);
    report.outputs(&case.gradients, &gradients);
    machine.run("train", &case.train, case.steps());
    let ring = floats(&machine.state.read(case.slots.ring).unwrap());
    let rows = ring.chunks(COLUMNS.len()).take(case.steps());
    report.losses(&rows.map(|row| row[0] / row[1]).collect::<Vec<_>>());
    for (id, slot) in case.parameters() {
        assert_eq!(machine.spec.get(id).ty.dtype, DType::F32);
        report.trained(&slot.name, &floats(&machine.state.read(id).unwrap()));
    }
    (report, (vec![logits, gradients], machine.contents()))
}

/// The same, within the bounds.
fn check(case: &Case, threads: usize) -> Computed {
    let (report, computed) = compare(case, threads);
    report.finish();
    computed
}

#[test]
fn golden_cases_on_the_cpu_executor() {
    for g in &golden::all() {
        let case = Case::new(g);
        let one = check(&case, 1);
        assert!(one == check(&case, 2), "golden {}: one and two threads differ", g.name);
    }
}

/// The bounds can fail: a weight that is off by one part in ten thousand is found.
#[test]
fn golden_bounds_find_a_slightly_wrong_weight() {
    let mut g = golden::all().into_iter().find(|g| g.name == "tiny").unwrap();
    g.scale("w.decoder.blocks.1.ffn.0.weight", 1.0 + 1e-4);
    let case = Case::new(&g);
    let exceeded = compare(&case, 1).0.exceeded();
    assert!(exceeded.iter().any(|(kind, _)| *kind == Kind::Value), "a wrong weight passed: {exceeded:?}");
}
