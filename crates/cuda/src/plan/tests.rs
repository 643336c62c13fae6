//! Tests of where operands lie and of what is left for later.

use super::*;
use ocelli_ir::ops::{Adam, Add, Cast, Increment, LayerNormGrad};
use ocelli_ir::{DType, Init, Slot, SlotKind, StateSpec};
use std::sync::Arc;

fn operand(place: Place, dtype: DType, offset: usize) -> Operand {
    let view = View { offset, ..View::contiguous([100]) };
    Operand { place, contents: 0, view, dtype }
}

/// y = the second half of the first input plus the second one; a counter counts in place and is given out.
fn plan() -> Plan {
    let mut spec = StateSpec::default();
    let ty = TensorType::u32([100]);
    spec.declare(Slot { name: "n".into(), ty, kind: SlotKind::Counter, init: Init::Zeros }).unwrap();
    let launch = |op: Op, inputs: Vec<Operand>, outputs: Vec<Operand>| Launch {
        op,
        scope: "".into(),
        inputs,
        outputs,
        branch: 0,
        after: vec![],
    };
    let [a, b] = [(0, 100), (1, 0)].map(|(i, offset)| operand(Place::Input(i), DType::F32, offset));
    let y = operand(Place::Arena(512), DType::F32, 0);
    let n = operand(Place::State(SlotId(0)), DType::U32, 0);
    Plan {
        name: "places".into(),
        launches: vec![
            launch(Add.into(), vec![a, b], vec![y.clone()]),
            launch(Increment.into(), vec![n.clone()], vec![n.clone()]),
        ],
        inputs: vec![("a".into(), TensorType::f32([200])), ("b".into(), TensorType::f32([100]))],
        outputs: vec![("y".into(), y), ("n".into(), n)],
        arena_bytes: 912,
        state: Arc::new(spec),
    }
}

#[test]
fn operands_lie_where_the_plan_says() {
    let (steps, own) = steps(&plan(), Machine::new(100)).unwrap();
    // Inputs start at multiples of 256 bytes; the copy of the counter lies behind them.
    assert_eq!((own.inputs, own.input_bytes, own.bytes), (vec![0, 1024], 1536, 2048));
    assert_eq!(own.kept, [None, Some(1536)]);
    let spot = |home, at| Spot { home, at };
    assert_eq!(steps[0].ins, [spot(Home::Own, 400), spot(Home::Own, 1024)]);
    assert_eq!(steps[0].outs, [spot(Home::Arena, 512)]);
    assert_eq!(steps[1].ins, [spot(Home::State(SlotId(0)), 0)]);
    assert_eq!((&steps[2].ins, &steps[2].outs), (&steps[1].outs, &vec![spot(Home::Own, 1536)]));
}

/// Two gradients of norms, the second on another branch, then a sum of what they leave for one scale and one shift.
#[test]
fn sums_that_launches_leave_are_made_once_before_they_are_read() {
    let (rows, cols) = (64, 128);
    let f32 = |at: usize, shape: &[usize]| Operand {
        place: Place::Arena(at),
        contents: 0,
        view: View::contiguous(shape.to_vec()),
        dtype: DType::F32,
    };
    let matrix = rows * cols * 4;
    let norm = |at: usize, branch| Launch {
        op: LayerNormGrad.into(),
        scope: "".into(),
        inputs: vec![
            f32(0, &[rows, cols]),
            f32(matrix, &[cols]),
            f32(matrix + 512, &[rows]),
            f32(matrix + 768, &[rows]),
            f32(2 * matrix, &[rows, cols]),
        ],
        outputs: vec![f32(at, &[rows, cols]), f32(at + matrix, &[cols]), f32(at + matrix + 512, &[cols])],
        branch,
        after: vec![],
    };
    let (first, second) = (4 * matrix, 6 * matrix);
    let add = Launch {
        op: Add.into(),
        scope: "".into(),
        inputs: vec![f32(first + matrix, &[cols]), f32(second + matrix + 512, &[cols])],
        outputs: vec![f32(8 * matrix, &[cols])],
        branch: 0,
        after: vec![1],
    };
    let plan = Plan {
        name: "late".into(),
        launches: vec![norm(first, 0), norm(second, 1), add],
        inputs: vec![],
        outputs: vec![("y".into(), f32(8 * matrix, &[cols]))],
        arena_bytes: 9 * matrix,
        state: Arc::default(),
    };
    let (steps, own) = steps(&plan, Machine::new(100)).unwrap();
    let launches: Vec<(usize, usize, usize)> =
        steps.iter().map(|s| (s.launch, s.launches, s.branch)).collect();
    assert_eq!(launches, [(0, 1, 0), (1, 1, 1), (1, 0, 0), (2, 1, 0)]);
    // The sums wait for the other branch, and go to all four places.
    assert_eq!((&steps[2].after, steps[2].outs.len()), (&vec![1], 4));
    assert_eq!(steps[2].outs[3], Spot { home: Home::Arena, at: second + matrix + 512 });
    // What they are made of lies apart.
    assert_eq!(steps[1].kept, steps[0].kept + steps[0].lowered.kept);
    assert_eq!(own.bytes, steps[1].kept + steps[1].lowered.kept);
    assert!(steps[0].lowered.kept >= 2 * cols * 4);
}

#[test]
fn operands_outside_their_place_are_refused() {
    let mut outside = plan();
    outside.arena_bytes = 911;
    assert!(matches!(steps(&outside, Machine::new(100)), Err(ExecError::Misuse { .. })));
    let mut other = plan();
    other.launches[1].inputs[0].place = Place::State(SlotId(7));
    assert!(matches!(steps(&other, Machine::new(100)), Err(ExecError::Misuse { .. })));
}

/// Steps of an optimiser of three weights, the first and the last of which are kept rounded.
#[test]
fn casts_behind_the_optimiser_are_part_of_it() {
    let mut spec = StateSpec::default();
    let mut slot = |name: &str, dtype, kind| {
        let ty = TensorType::new(dtype, [100]);
        spec.declare(Slot { name: name.into(), ty, kind, init: Init::Zeros }).unwrap()
    };
    let state = |slot, contents| Operand { contents, ..operand(Place::State(slot), DType::F32, 0) };
    let number = |at, dtype| Operand {
        view: View::contiguous(Vec::<usize>::new()),
        ..operand(Place::Arena(at), dtype, 0)
    };
    let scalars = [(512, DType::F32), (768, DType::F32), (1024, DType::U32), (1280, DType::U32)];
    let (mut launches, mut halves) = (Vec::new(), Vec::new());
    let launch =
        |op: Op, inputs, outputs| Launch { op, scope: "".into(), inputs, outputs, branch: 0, after: vec![] };
    for (i, kept) in [true, false, true].into_iter().enumerate() {
        let [p, m, v] = ["p", "m", "v"].map(|n| slot(&format!("{n}{i}"), DType::F32, SlotKind::Parameter));
        let old = [p, m, v].map(|s| state(s, 0)).into_iter().chain([operand(Place::Arena(0), DType::F32, 0)]);
        let inputs = old.chain(scalars.map(|(at, dtype)| number(at, dtype))).collect();
        let adam = Adam { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0, decoupled: false };
        launches.push(launch(adam.into(), inputs, [p, m, v].map(|s| state(s, 1)).into()));
        if kept {
            let half = slot(&format!("p{i}.bf16"), DType::Bf16, SlotKind::Rounded(p));
            let to = operand(Place::State(half), DType::Bf16, 0);
            launches.push(launch(Cast { to: DType::Bf16 }.into(), vec![state(p, 1)], vec![to]));
            halves.push(half);
        }
    }
    let elsewhere = launch(
        Cast { to: DType::Bf16 }.into(),
        vec![launches[0].outputs[0].clone()],
        vec![operand(Place::Arena(1536), DType::Bf16, 0)],
    );
    launches.push(elsewhere);
    let plan = Plan {
        name: "optimiser".into(),
        launches,
        inputs: vec![],
        outputs: vec![],
        arena_bytes: 2048,
        state: Arc::new(spec),
    };
    let (steps, _) = steps(&plan, Machine::new(100)).unwrap();
    assert_eq!(steps.iter().map(|s| (s.launch, s.launches)).collect::<Vec<_>>(), [(0, 5), (5, 1)]);
    let (step, table) = (&steps[0], &steps[0].lowered.table);
    assert_eq!((step.lowered.calls.len(), table.len()), (1, 3 * 8));
    let homes: Vec<_> = [7, 15, 23].map(|i| (step.spot(table[i].0).unwrap().home, table[i].1)).into();
    let weight = plan.state.find("p1").unwrap();
    assert_eq!(
        homes,
        [(Home::State(halves[0]), 100), (Home::State(weight), 0), (Home::State(halves[1]), 100)]
    );
    let source = step.sources().next().unwrap();
    assert!(source.contains("#define HALVES 1\n#define TH bf16\n"), "{source}");
    for arch in ["sm_80", "sm_90a"] {
        match crate::compile(&format!("{}\n{source}", crate::executor::PRELUDE), arch) {
            Err(crate::NvrtcFault::Missing(why)) => println!("not compiled: {why}"),
            compiled => assert!(compiled.unwrap().len() > 64),
        }
    }
}
