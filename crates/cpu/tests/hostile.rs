//! Plans and hosts that are wrong are refused with a message, before anything runs.

use ocelli_cpu::CpuExecutor;
use ocelli_ir::executor::{ExecError, Executor, Need, Program};
use ocelli_ir::ops::*;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::{DType, Init, Op, Slot, SlotId, SlotKind, StateSpec, TensorType, View};
use ocelli_testkit::case::empty;
use std::sync::Arc;

fn at(place: Place, view: View) -> Operand {
    Operand { place, contents: 0, view, dtype: DType::F32 }
}

fn dense(place: Place, n: usize) -> Operand {
    at(place, View::contiguous([n]))
}

fn strided(offset: usize, shape: &[usize], strides: &[usize]) -> View {
    View { offset, shape: shape.to_vec().into(), strides: strides.to_vec() }
}

/// A plan of one launch over 4096 bytes of arena, one input and one slot of 16 floats each.
fn plan(op: impl Into<Op>, inputs: Vec<Operand>, outputs: Vec<Operand>) -> Plan {
    let mut spec = StateSpec::default();
    let ty = TensorType::f32([16]);
    spec.declare(Slot {
        name: "w".into(),
        ty: ty.clone(),
        kind: SlotKind::Parameter,
        init: Init::Constant(2.0),
    })
    .unwrap();
    let launch = Launch { op: op.into(), scope: "m".into(), inputs, outputs, branch: 0, after: vec![] };
    let inputs = vec![("x".to_string(), ty)];
    Plan { launches: vec![launch], inputs, arena_bytes: 4096, state: Arc::new(spec), ..empty() }
}

fn refused(plan: Plan, part: &str) {
    let error = CpuExecutor::new(Some(1)).unwrap().load_program(plan).unwrap_err();
    assert!(matches!(error, ExecError::Misuse { .. }), "{error}");
    assert!(error.to_string().contains(part), "'{error}' does not say '{part}'");
}

#[test]
fn operands_outside_their_place() {
    let x = || dense(Place::Input(0), 16);
    let arena = |byte| dense(Place::Arena(byte), 16);
    for (input, output) in [
        (arena(4096 - 60), arena(0)),
        (arena(usize::MAX - 3), arena(0)),
        (dense(Place::Input(0), 17), dense(Place::Arena(0), 17)),
        (dense(Place::State(SlotId(0)), 17), dense(Place::Arena(0), 17)),
        (x(), arena(4096)),
        (at(Place::Input(0), strided(1, &[16], &[1])), arena(0)),
        (at(Place::Input(0), strided(usize::MAX, &[16], &[1])), arena(0)),
        (at(Place::Input(0), strided(0, &[16], &[usize::MAX / 3])), arena(0)),
    ] {
        refused(plan(Contiguous, vec![input], vec![output]), "outside");
    }
    let huge = strided(0, &[1 << 40, 1 << 40], &[0, 0]);
    refused(
        plan(Contiguous, vec![at(Place::Input(0), huge.clone())], vec![at(Place::Arena(0), huge)]),
        "outside",
    );
    refused(plan(Contiguous, vec![x()], vec![arena(2)]), "not aligned");
    refused(plan(Contiguous, vec![dense(Place::Input(1), 16)], vec![arena(0)]), "no f32 input 1");
    refused(plan(Contiguous, vec![dense(Place::State(SlotId(9)), 16)], vec![arena(0)]), "no f32 slot 9");
    refused(plan(Contiguous, vec![arena(0)], vec![x()]), "program input");
}

#[test]
fn operands_that_overlap() {
    let arena = |byte| dense(Place::Arena(byte), 16);
    refused(plan(Contiguous, vec![arena(0)], vec![arena(32)]), "overlaps input 0");
    refused(plan(Add, vec![arena(64), arena(0)], vec![arena(0)]), "overlaps input 1");
    let doubled = at(Place::Arena(0), strided(0, &[4, 4], &[2, 1]));
    let x = at(Place::Input(0), View::contiguous([4, 4]));
    refused(plan(Contiguous, vec![x.clone()], vec![doubled]), "share memory");
    let repeated = at(Place::Arena(0), strided(0, &[4, 4], &[0, 1]));
    refused(plan(Contiguous, vec![x.clone()], vec![repeated]), "share memory");
    let half = |offset| at(Place::Arena(0), strided(offset, &[4, 2], &[4, 1]));
    refused(plan(Split { axis: 1, parts: 2 }, vec![x.clone()], vec![half(0), half(1)]), "overlaps output 0");
    // Halves of one matrix interleave without meeting: no error.
    let good = plan(Split { axis: 1, parts: 2 }, vec![x], vec![half(0), half(2)]);
    CpuExecutor::new(Some(1)).unwrap().load_program(good).unwrap();
}

#[test]
fn in_place_only_with_the_very_operand() {
    let counter = |byte| Operand { dtype: DType::U32, ..dense(Place::Arena(byte), 4) };
    let good = plan(Increment, vec![counter(0)], vec![counter(0)]);
    CpuExecutor::new(Some(1)).unwrap().load_program(good).unwrap();
    refused(plan(Increment, vec![counter(0)], vec![counter(4)]), "overlaps input 0");
}

#[test]
fn launches_that_break_their_rule() {
    let x = || dense(Place::Input(0), 16);
    refused(plan(Contiguous, vec![x()], vec![dense(Place::Arena(0), 15)]), "its rule says");
    refused(plan(Contiguous, vec![], vec![dense(Place::Arena(0), 15)]), "takes 1 inputs");
    refused(plan(Gelu, vec![x()], vec![]), "its rule says");
    let ty = TensorType::f32([16]);
    refused(
        plan(StateRead { slot: SlotId(0), ty: ty.clone() }, vec![], vec![dense(Place::Arena(0), 16)]),
        "not a launch",
    );
    let write = StateWrite { slot: SlotId(0), ty };
    refused(plan(write, vec![x()], vec![dense(Place::Arena(0), 16)]), "to its slot");
    let turned = at(Place::Input(0), strided(0, &[4, 4], &[1, 4]));
    let out = at(Place::Arena(0), View::contiguous([4, 4]));
    refused(plan(Softmax, vec![turned.clone()], vec![out.clone()]), "cannot read");
    let mut later = plan(Gelu, vec![x()], vec![dense(Place::Arena(0), 16)]);
    later.launches[0].after = vec![0];
    refused(later, "later launch");
    let short = View { strides: vec![], ..View::contiguous([16]) };
    refused(plan(Gelu, vec![at(Place::Input(0), short)], vec![dense(Place::Arena(0), 16)]), "strides");
}

#[test]
fn memory_that_cannot_be_had() {
    let p = Plan { arena_bytes: 1 << 60, ..empty() };
    let error = CpuExecutor::new(Some(1)).unwrap().load_program(p).unwrap_err();
    assert!(matches!(error, ExecError::OutOfMemory { need: Need::Batch, .. }), "{error}");
    assert!(error.to_string().contains("; try a smaller trainer_config.train_batch_size, or"), "{error}");
    for (kind, part) in [
        (SlotKind::Parameter, "try a smaller model (model_config"),
        (SlotKind::Moment, "try a smaller model (model_config"),
        (SlotKind::Cache, "caption fewer pictures"),
    ] {
        let mut spec = StateSpec::default();
        let ty = TensorType::f32([1 << 58]);
        spec.declare(Slot { name: "huge".into(), ty, kind, init: Init::Zeros }).unwrap();
        let error = CpuExecutor::new(Some(1)).unwrap().new_state(&Arc::new(spec), 0).unwrap_err().to_string();
        let bytes = 1_u64 << 60;
        let all = format!("cannot allocate {bytes} bytes for huge (all state takes {bytes} bytes)");
        assert!(error.contains(&all) && error.contains(part) && !error.contains("batch"), "{error}");
    }
}

#[test]
fn hosts_that_do_not_fit() {
    let executor = CpuExecutor::new(Some(1)).unwrap();
    let mut good = plan(Gelu, vec![dense(Place::Input(0), 16)], vec![dense(Place::Arena(0), 16)]);
    good.outputs = vec![("y".into(), dense(Place::Arena(0), 16))];
    let mut program = executor.load_program(good.clone()).unwrap();
    let mut state = executor.new_state(&good.state, 0).unwrap();
    let says = |result: Result<(), ExecError>, part: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(part), "'{error}' does not say '{part}'");
    };
    says(program.run(&mut *state, &[]), "takes 1 inputs, got 0");
    says(program.run(&mut *state, &[(&[0; 60]).into()]), "64 bytes, got 60");
    says(program.output(0).map(drop), "has not run");
    let mut other = executor.new_state(&Arc::new(StateSpec::default()), 0).unwrap();
    says(program.run(&mut *other, &[(&[0; 64]).into()]), "no slot 'w'");
    says(state.write(SlotId(0), &[0; 3]), "holds 64 bytes, got 3");
    says(state.read(SlotId(7)).map(drop), "no slot 7");
    program.run(&mut *state, &[(&[0; 64]).into()]).unwrap();
    says(program.output(3).map(drop), "no output 3");
    let mut second = executor.load_program(good).unwrap();
    assert!(program.output(0).is_ok());
    second.run(&mut *state, &[(&[0; 64]).into()]).unwrap();
    says(program.output(0).map(drop), "has not run since another");
}
