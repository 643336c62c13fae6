//! Tests of where operands lie and of what is left for later.

use super::*;
use ocelli_ir::ops::{Add, Increment, LayerNormGrad};
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
