//! Pass `precision` on whole training steps: what is stored in 16 bits, what comes of it, and loss scaling.

mod step_support;

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::executor::{Executor, Input, State};
use ocelli_ir::plan::{Place, Plan};
use ocelli_ir::reference::evaluate;
use ocelli_ir::{DType, Graph, Op, SlotKind, StateSpec};
use ocelli_passes::{Options, PassCx, Precision, Stage, pipeline};
use ocelli_testkit::host::{bytes, floats, loaded};
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::collections::HashMap;
use std::sync::Arc;
use step_support::{Inputs, MODEL, batch, rows, start};

const SIZE: Size = Size { batch: 5, text: 7 };

fn policy(half: DType, stream: DType) -> Option<Precision> {
    Some(Precision { half, stream })
}

fn build(
    state: &mut StateSpec,
    precision: Option<Precision>,
    make: impl FnOnce(&mut PassCx<'_>) -> Graph,
) -> Graph {
    let mut cx =
        PassCx { options: Options { precision, ..Options::default() }, ..PassCx::new(state, &CpuTarget) };
    let graph = make(&mut cx);
    pipeline::run(Stage::Whole, "test", graph, &mut cx).unwrap()
}

fn train(state: &mut StateSpec, precision: Option<Precision>) -> Graph {
    let scale_loss = precision.is_some_and(|p| p.half == DType::F16);
    let optimizer = Optimizer { scale_loss, ..Optimizer::ADAM };
    build(state, precision, |cx| program::train(cx, &MODEL, SIZE, Pictures::Bytes, &optimizer).unwrap())
}

fn inputs() -> Inputs {
    batch(&rows(&[3, 7, 1, 2, 4]), 0, 5, 7)
}

fn of_plan(plan: &Plan, inputs: &Inputs) -> Vec<Vec<u8>> {
    plan.inputs.iter().map(|(name, _)| bytes(&inputs.iter().find(|(n, _)| n == name).unwrap().1)).collect()
}

/// A training program on the CPU, with its state.
struct Machine {
    program: Box<dyn ocelli_ir::executor::Program>,
    state: Box<dyn State>,
    spec: Arc<StateSpec>,
    inputs: Vec<Vec<u8>>,
}

impl Machine {
    fn new(precision: Option<Precision>) -> Self {
        let mut spec = StateSpec::default();
        let graph = train(&mut spec, precision);
        let spec = Arc::new(spec);
        let executor = CpuExecutor::new(Some(2)).unwrap();
        let mut state = executor.new_state(&spec, 0).unwrap();
        for (id, tensor) in start(&spec) {
            state.write(id, &bytes(&tensor)).unwrap();
        }
        let plan = pipeline::plan("train", &graph, &spec, executor.target()).unwrap();
        let inputs = of_plan(&plan, &inputs());
        Self { program: executor.load(plan).unwrap(), state, spec, inputs }
    }

    fn step(&mut self) {
        let inputs: Vec<Input<'_>> = self.inputs.iter().map(Input::from).collect();
        self.program.run(&mut *self.state, &inputs).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        self.state.read(self.spec.find(name).unwrap()).unwrap()
    }

    fn write(&mut self, name: &str, value: f32) {
        self.state.write(self.spec.find(name).unwrap(), &value.to_le_bytes()).unwrap();
    }

    fn count(&self, name: &str) -> u32 {
        u32::from_le_bytes(self.read(name).try_into().unwrap())
    }

    /// Summed loss of attempt `row`.
    fn loss(&self, row: usize) -> f64 {
        floats(&self.read("metrics.ring"))[row * program::COLUMNS.len()]
    }

    fn weights(&self) -> Vec<Vec<u8>> {
        let kept = |kind| matches!(kind, SlotKind::Parameter | SlotKind::Moment);
        self.spec.iter().filter(|(_, s)| kept(s.kind)).map(|(id, _)| self.state.read(id).unwrap()).collect()
    }
}

#[test]
fn products_read_16_bits_and_the_optimiser_32() {
    for half in [DType::Bf16, DType::F16] {
        for stream in [DType::F32, half] {
            let g = train(&mut StateSpec::default(), policy(half, stream));
            let dtype = |v: &ocelli_ir::Value| g.ty(*v).dtype;
            let (mut products, mut halves, mut streams) = (0, 0, 0);
            for node in g.nodes() {
                let float = |v: &&ocelli_ir::Value| g.ty(**v).dtype.is_float();
                match &node.op {
                    op if !op.operands().is_empty() => {
                        products += 1;
                        assert!(op.operands().iter().all(|&i| dtype(&node.inputs[i]) == half), "{op}");
                    }
                    // A weight that is kept in 16 bits as well.
                    Op::StateWrite(op) if op.ty.dtype == half => {}
                    Op::Adam(_) | Op::SumSquares(_) | Op::StateWrite(_) => {
                        assert!(
                            node.inputs.iter().filter(float).all(|v| dtype(v) == DType::F32),
                            "{}",
                            node.op
                        );
                    }
                    Op::Add(_) if g.ty(node.outputs[0]).shape.len() == 3 => {
                        streams += 1;
                        assert_eq!(dtype(&node.outputs[0]), stream);
                    }
                    _ => {}
                }
                halves += node.outputs.iter().filter(|v| dtype(v) == half).count();
            }
            assert!(products > 20 && halves > 40 && streams > 5, "{products} {halves} {streams}");
        }
    }
}

/// Length of the difference over the length of `b`.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let length = |x: &mut dyn Iterator<Item = f64>| x.map(|d| d * d).sum::<f64>().sqrt();
    length(&mut a.iter().zip(b).map(|(a, b)| a - b)) / length(&mut b.iter().copied())
}

/// Loss, weight and gradients: by the reference in f64 on values rounded as they are stored, and on the CPU.
fn gradients(precision: Option<Precision>) -> [Vec<Vec<f64>>; 2] {
    let mut spec = StateSpec::default();
    let make = |cx: &mut PassCx<'_>| program::mean_gradients(cx, &MODEL, SIZE, Pictures::Bytes).unwrap();
    let graph = build(&mut spec, precision, make);
    let spec = Arc::new(spec);
    let map: HashMap<_, _> = inputs().into_iter().collect();
    let reference = evaluate(&graph, &map, &mut start(&spec)).unwrap();
    let executor = CpuExecutor::new(Some(2)).unwrap();
    let mut state = executor.new_state(&spec, 0).unwrap();
    for (id, tensor) in start(&spec) {
        state.write(id, &bytes(&tensor)).unwrap();
    }
    let plan = pipeline::plan("gradients", &graph, &spec, executor.target()).unwrap();
    let given = of_plan(&plan, &inputs());
    let mut program = executor.load(plan).unwrap();
    program.run(&mut *state, &given.iter().map(Input::from).collect::<Vec<_>>()).unwrap();
    let outputs = (0..graph.outputs().len()).map(|i| floats(&program.output(i).unwrap())).collect();
    [reference.iter().map(|t| t.as_real().to_vec()).collect(), outputs]
}

#[test]
fn gradients_are_those_of_32_bits_within_the_rounding() {
    let [exact, _] = gradients(None);
    for (half, bound) in [(DType::Bf16, 0.06), (DType::F16, 0.008)] {
        for stream in [DType::F32, half] {
            let [reference, cpu] = gradients(policy(half, stream));
            let mut largest: f64 = 0.0;
            for (i, exact) in exact.iter().enumerate() {
                let far = distance(&reference[i], exact);
                largest = largest.max(far);
                assert!(far < bound, "{half} {stream}: output {i} is {far} off");
                // The same numbers were rounded, but for those on the edge between two neighbours.
                let apart = distance(&cpu[i], &reference[i]);
                assert!(apart < bound / 3.0, "{half} {stream}: output {i} is {apart} from the reference");
            }
            assert!(largest > bound / 50.0, "{half}: {largest} is less than rounding makes");
        }
    }
}

#[test]
fn training_in_16_bits_learns_as_in_32() {
    let loss = |precision| {
        let mut machine = Machine::new(precision);
        (0..60).for_each(|_| machine.step());
        // Of single steps dropout makes more difference than rounding.
        [machine.loss(0), (50..60).map(|step| machine.loss(step)).sum::<f64>() / 10.0]
    };
    let [first, last] = loss(None);
    assert!(last < 0.7 * first, "{first} {last}");
    for policy in
        [policy(DType::Bf16, DType::F32), policy(DType::Bf16, DType::Bf16), policy(DType::F16, DType::F32)]
    {
        let [_, other] = loss(policy);
        assert!((other - last).abs() < 0.1 * last, "{policy:?}: {other} instead of {last}");
    }
}

#[test]
fn an_overflow_is_no_step_and_halves_the_scale() {
    let mut machine = Machine::new(policy(DType::F16, DType::F32));
    machine.step();
    machine.write("amp.loss_scale", 16_777_216.0);
    let before = machine.weights();
    machine.step();
    assert!(machine.weights() == before, "weights and moments stay");
    assert_eq!(floats(&machine.read("amp.loss_scale")), [8_388_608.0]);
    assert_eq!((machine.count("optimizer.step"), machine.count("optimizer.attempts")), (1, 2));
    assert_eq!((machine.count("data.batches"), machine.count("amp.good_steps")), (2, 0));
    (0..30).for_each(|_| machine.step());
    let steps = machine.count("optimizer.step");
    assert!(machine.weights() != before && (10..31).contains(&steps), "{steps} of 32 attempts were steps");
    assert!(floats(&machine.read("amp.loss_scale"))[0] < 8_388_608.0);
    // The device's ring says which attempt was none.
    let ring = floats(&machine.read("metrics.ring"));
    let row = &ring[program::COLUMNS.len()..][..program::COLUMNS.len()];
    assert!(row[0].is_finite() && !row[2].is_finite() && row[4] == 16_777_216.0, "{row:?}");
}

#[test]
fn the_scale_changes_no_result_but_by_rounding() {
    let weights = |scale: f32| {
        let mut machine = Machine::new(policy(DType::F16, DType::F32));
        machine.write("amp.loss_scale", scale);
        machine.step();
        floats(&machine.read("metrics.ring"))[2]
    };
    let (a, b) = (weights(1024.0), weights(4096.0));
    assert!(a > 0.0 && (a - b).abs() < 2e-3 * a, "norms {a} and {b}");
}

/// Every slot that holds a weight in 16 bits holds what the weight is.
fn check_rounded(machine: &Machine, half: DType) -> usize {
    let rounded = machine.spec.iter().filter_map(|(id, s)| match s.kind {
        SlotKind::Rounded(of) => Some((id, of, s)),
        _ => None,
    });
    rounded
        .map(|(id, of, slot)| {
            assert_eq!(slot.ty.dtype, half);
            let weight = floats(&machine.state.read(of).unwrap());
            let want: Vec<f64> = weight.into_iter().map(|x| half.round(x)).collect();
            let have = loaded(&machine.state.read(id).unwrap(), half);
            assert!(have == want, "{}", slot.name);
        })
        .count()
}

#[test]
fn trained_weights_are_kept_in_16_bits_as_well() {
    for half in [DType::Bf16, DType::F16] {
        let mut machine = Machine::new(policy(half, half));
        let kept = check_rounded(&machine, half);
        assert!(kept > 10, "{kept}");
        let of_state = |o: &ocelli_ir::plan::Operand| matches!(o.place, Place::State(_));
        let launches = &machine.program.plan().launches;
        let casts: Vec<_> =
            launches.iter().filter(|l| matches!(l.op, Op::Cast(_)) && of_state(&l.inputs[0])).collect();
        // Behind the optimiser, straight into their slots; none as the step starts.
        assert_eq!(casts.len(), kept);
        assert!(casts.iter().all(|l| of_state(&l.outputs[0])), "{}", machine.program.plan());
        assert!(!launches.iter().any(|l| matches!(l.op, Op::StateWrite(_)) && l.outputs[0].dtype == half));
        let before = machine.weights();
        machine.step();
        check_rounded(&machine, half);
        assert!(machine.weights() != before);
        // A step that is none.
        let name = "decoder.lm_head.bias";
        let slot = machine.spec.find(name).unwrap();
        let bias = machine.read(name);
        machine.state.write(slot, &vec![0xff; bias.len()]).unwrap();
        machine.step();
        machine.state.write(slot, &bias).unwrap();
        check_rounded(&machine, half);
        // The host writes the weight, and never what follows from it.
        let (id, of) = machine
            .spec
            .iter()
            .find_map(|(id, s)| if let SlotKind::Rounded(of) = s.kind { Some((id, of)) } else { None })
            .unwrap();
        let numbers: Vec<u8> = (0..machine.spec.get(of).ty.shape.numel())
            .flat_map(|i| (i as f32 * 0.37).to_le_bytes())
            .collect();
        machine.state.write(of, &numbers).unwrap();
        check_rounded(&machine, half);
        let follows = machine.state.read(id).unwrap();
        let refused = machine.state.write(id, &follows).unwrap_err().to_string();
        assert!(refused.contains(&machine.spec.get(of).name), "{refused}");
        // Programs that only read use them too, and add none.
        let mut spec = (*machine.spec).clone();
        let evaluate = |cx: &mut PassCx<'_>| program::evaluate(cx, &MODEL, SIZE, Pictures::Bytes).unwrap();
        let g = build(&mut spec, policy(half, half), evaluate);
        assert_eq!(spec.len(), machine.spec.len());
        let weight = |n: &ocelli_ir::Node| matches!(&g.producer(n.inputs[0]).op, Op::StateRead(_));
        assert!(!g.nodes().iter().any(|n| matches!(n.op, Op::Cast(_)) && weight(n)), "{g}");
        // A plan that leaves one out is refused.
        let mut broken = machine.program.plan().clone();
        broken.launches.retain(|l| !(matches!(l.op, Op::Cast(_)) && of_state(&l.inputs[0])));
        let said = ocelli_passes::verify::plan(&broken, &CpuTarget).unwrap_err();
        assert!(said.contains("is not written with what it follows from"), "{said}");
    }
    let mut plain = StateSpec::default();
    train(&mut plain, None);
    assert!(!plain.iter().any(|(_, s)| matches!(s.kind, SlotKind::Rounded(_))));
}
