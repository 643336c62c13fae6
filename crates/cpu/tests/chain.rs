//! Whole programs: a chain of launches over one arena and one state, run again and again.

use ocelli_cpu::{CpuExecutor, CpuState};
use ocelli_ir::executor::{Executor, Program};
use ocelli_ir::ops::*;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::rng::Stream;
use ocelli_ir::{DType, Init, Op, Slot, SlotId, SlotKind, StateSpec, TensorType, View};
use ocelli_testkit::host::floats;
use std::sync::Arc;

const ROWS: usize = 700;
const WIDTH: usize = 96;

fn f32s(place: Place, shape: &[usize]) -> Operand {
    Operand { place, contents: 0, view: View::contiguous(shape.to_vec()), dtype: DType::F32 }
}

fn step(place: Place) -> Operand {
    Operand { place, contents: 0, view: View::contiguous([]), dtype: DType::U32 }
}

fn launch(op: impl Into<Op>, inputs: &[&Operand], outputs: &[&Operand]) -> Launch {
    let own = |os: &[&Operand]| os.iter().map(|&o| o.clone()).collect();
    Launch {
        op: op.into(),
        scope: "chain".into(),
        inputs: own(inputs),
        outputs: own(outputs),
        branch: 0,
        after: vec![],
    }
}

fn spec() -> Arc<StateSpec> {
    let mut spec = StateSpec::default();
    let w = TensorType::f32([WIDTH, WIDTH]);
    let slots = [
        ("w", w.clone(), SlotKind::Parameter, Init::Normal { std: 0.2 }),
        ("w.m", w.clone(), SlotKind::Moment, Init::Zeros),
        ("w.v", w, SlotKind::Moment, Init::Zeros),
        ("step", TensorType::u32([]), SlotKind::Counter, Init::Zeros),
        ("one", TensorType::f32([]), SlotKind::Setting, Init::Constant(1.0)),
        ("lr", TensorType::f32([]), SlotKind::Setting, Init::Constant(0.01)),
    ];
    for (name, ty, kind, init) in slots {
        spec.declare(Slot { name: name.into(), ty, kind, init }).unwrap();
    }
    Arc::new(spec)
}

/// y = gelu(x w^T); loss = sum(y^2); w takes a step of Adam down the gradient (up to a factor).
fn plan() -> Plan {
    let slot = |i| Place::State(SlotId(i));
    let x = f32s(Place::Input(0), &[ROWS, WIDTH]);
    let [w, m, v] = [0, 1, 2].map(|i| f32s(slot(i), &[WIDTH, WIDTH]));
    let (t, one, lr) = (step(slot(3)), f32s(slot(4), &[]), f32s(slot(5), &[]));
    let big = (ROWS * WIDTH * 4).next_multiple_of(64);
    let [h, y, dh] = [0, 1, 2].map(|i| f32s(Place::Arena(i * big), &[ROWS, WIDTH]));
    let dw = f32s(Place::Arena(3 * big), &[WIDTH, WIDTH]);
    let loss = f32s(Place::Arena(4 * big), &[]);
    let linear = MatMul { ta: false, tb: true, bias: false };
    let weight_grad = MatMul { ta: true, tb: false, bias: false };
    let adam = Adam { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0, decoupled: false };
    let launches = vec![
        launch(Increment, &[&t], &[&t]),
        launch(linear, &[&x, &w], &[&h]),
        launch(Gelu, &[&h], &[&y]),
        launch(SumSquares, &[&y], &[&loss]),
        launch(GeluGrad, &[&h, &y], &[&dh]),
        launch(weight_grad, &[&dh, &x], &[&dw]),
        launch(adam, &[&w, &m, &v, &dw, &one, &lr, &t, &t], &[&w, &m, &v]),
    ];
    Plan {
        name: "chain".into(),
        launches,
        inputs: vec![("x".into(), TensorType::f32([ROWS, WIDTH]))],
        outputs: vec![("loss".into(), loss), ("step".into(), t), ("w".into(), w)],
        arena_bytes: 4 * big + 64,
        state: spec(),
    }
}

fn input() -> Vec<u8> {
    let s = Stream::new(3, "x");
    (0..ROWS * WIDTH).flat_map(|i| s.normal_at(i as u64, 1.0).to_le_bytes()).collect()
}

/// Losses of some steps, and the weights in the end.
fn train(threads: usize, x: &[u8]) -> (Vec<f64>, Vec<u8>) {
    let executor = CpuExecutor::new(Some(threads)).unwrap();
    let plan = plan();
    let mut program = executor.load_program(plan.clone()).unwrap();
    let mut state = executor.new_state(&plan.state, 5).unwrap();
    let losses = (1..=8u32).map(|i| {
        program.run(&mut *state, &[x.into()]).unwrap();
        assert_eq!(program.output(1).unwrap(), i.to_le_bytes());
        floats(&program.output(0).unwrap())[0]
    });
    let losses = losses.collect();
    assert_eq!(program.output(2).unwrap(), state.read(SlotId(0)).unwrap());
    (losses, state.read(SlotId(0)).unwrap())
}

#[test]
fn a_chain_learns_and_threads_change_no_bit() {
    let x = input();
    let one = train(1, &x);
    assert!(one.0.windows(2).all(|l| l[1] < l[0]), "{:?}", one.0);
    assert_eq!(one, train(2, &x));
    assert_eq!(one, train(3, &x));
}

#[test]
fn an_input_at_an_odd_address_gives_the_same() {
    let x = input();
    let mut shifted = vec![0; x.len() + 1];
    let odd = usize::from((shifted.as_ptr() as usize).is_multiple_of(2));
    shifted[odd..][..x.len()].copy_from_slice(&x);
    assert_eq!(train(2, &x), train(2, &shifted[odd..][..x.len()]));
}

#[test]
fn a_profile_has_a_time_for_each_launch() {
    let executor = CpuExecutor::new(None).unwrap();
    let plan = plan();
    let mut program = executor.load_program(plan.clone()).unwrap();
    let mut state = executor.new_state(&plan.state, 5).unwrap();
    let times = program.run_timed(&mut *state, &[(&input()).into()]).unwrap();
    assert_eq!(times.len(), plan.launches.len());
    assert!(times[1].seconds > 0.0 && times[1].first == 1);
}

#[test]
fn slots_start_as_the_spec_says_at_fixed_addresses() {
    let executor = CpuExecutor::new(Some(2)).unwrap();
    let spec = spec();
    let mut state = executor.new_state(&spec, 5).unwrap();
    for (id, slot) in spec.iter() {
        assert_eq!(state.read(id).unwrap(), slot.initial(5), "{}", slot.name);
    }
    assert!(state.as_any().downcast_mut::<CpuState>().is_some());
    state.write(SlotId(3), &9u32.to_le_bytes()).unwrap();
    assert_eq!(state.read(SlotId(3)).unwrap(), 9u32.to_le_bytes());
}
