//! The verifier: what must be true of every graph and every plan, checked after each pass in tests and once
//! per compiled program always (it costs milliseconds).

mod contents;

use crate::schedule::HappensBefore;
use ocelli_ir::executor::Target;
use ocelli_ir::ops::{StateRead, StateWrite};
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::{Graph, Op, SlotId, StateSpec, TensorType};
use std::collections::HashSet;

/// Checks a graph: types follow from the ops' own rules, inputs are named once, slots are of their state's
/// type and written at most once.
///
/// # Errors
/// The first thing that is not so.
pub fn graph(g: &Graph, state: &StateSpec) -> Result<(), String> {
    let (mut inputs, mut written) = (HashSet::new(), HashSet::new());
    for (i, node) in g.nodes().iter().enumerate() {
        let fail = |what: String| Err(format!("node {i} ({} in '{}'): {what}", node.op, node.scope));
        if node.inputs.iter().any(|v| g.values()[v.index()].node >= i) {
            return fail("uses a value that is made later".into());
        }
        let types: Vec<&TensorType> = node.inputs.iter().map(|&v| g.ty(v)).collect();
        let have: Vec<&TensorType> = node.outputs.iter().map(|&v| g.ty(v)).collect();
        if let Err(m) = node.op.check(&types, &have) {
            return fail(m);
        }
        match &node.op {
            Op::Fused(op) => {
                graph(&op.body, &StateSpec::default()).or_else(|m| fail(format!("its body: {m}")))?;
            }
            Op::Input(op) if !inputs.insert(op.name.clone()) => return fail("the name is taken".into()),
            Op::StateRead(StateRead { slot, ty }) | Op::StateWrite(StateWrite { slot, ty })
                if slot.0 as usize >= state.len() || state.get(*slot).ty != *ty =>
            {
                return fail("there is no slot of that type".into());
            }
            Op::StateWrite(op) if !written.insert(op.slot) => {
                return fail("the slot is written twice".into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks a plan against the invariants of [`ocelli_ir::plan`].
///
/// # Errors
/// The first invariant that does not hold, with the launch.
pub fn plan(p: &Plan, target: &dyn Target) -> Result<(), String> {
    for (i, l) in p.launches.iter().enumerate() {
        launch(p, l, i, target).map_err(|m| format!("launch {i} ({} in '{}'): {m}", l.op, l.scope))?;
    }
    races(p)?;
    contents::slots(p)?;
    rounded(p)?;
    // Element by element: only where that takes milliseconds. The layout's rules do not depend on size.
    if p.arena_bytes <= 4 << 20 { contents::arena(p) } else { Ok(()) }
}

/// Who writes a slot writes those that hold its numbers rounded.
fn rounded(p: &Plan) -> Result<(), String> {
    let outputs = p.launches.iter().flat_map(|l| &l.outputs);
    let written: HashSet<SlotId> =
        outputs.filter_map(|o| if let Place::State(slot) = o.place { Some(slot) } else { None }).collect();
    let left = |slot: &SlotId| p.state.rounded(*slot).find(|(id, _)| !written.contains(id)).map(|(_, s)| s);
    match written.iter().find_map(left) {
        Some(slot) => Err(format!("'{}' is not written with what it follows from", slot.name)),
        None => Ok(()),
    }
}

fn launch(p: &Plan, l: &Launch, index: usize, target: &dyn Target) -> Result<(), String> {
    if l.after.iter().any(|&a| a >= index) {
        return Err("waits for a later launch".into());
    }
    for o in l.inputs.iter().chain(&l.outputs) {
        let room = match o.place {
            Place::Arena(at) if at % target.alignment() != 0 => {
                return Err(format!("offset {at} is not aligned"));
            }
            Place::Arena(at) => p.arena_bytes.saturating_sub(at),
            Place::State(slot) => p.state.get(slot).ty.bytes(),
            Place::Input(i) => p.inputs.get(i).map_or(0, |(_, ty)| ty.bytes()),
        };
        if o.end_bytes() > room {
            return Err(format!("{} ends at byte {} of {room}", o.ty(), o.end_bytes()));
        }
    }
    if l.outputs.iter().any(|o| matches!(o.place, Place::Input(_))) {
        return Err("writes into a program input".into());
    }
    for (i, o) in l.inputs.iter().enumerate() {
        if !o.view.is_contiguous() && !target.reads_view(&l.op, i, &o.view) {
            return Err(format!("input {i} is a view that its kernel cannot read"));
        }
    }
    for (i, o) in l.outputs.iter().enumerate() {
        let spread = o.view.strides.iter().zip(o.view.shape.iter()).any(|(&s, &n)| s == 0 && n > 1);
        if spread || (!o.view.is_contiguous() && !target.writes_view(&l.op, i, &o.view)) {
            return Err(format!("output {i} is a view that its kernel cannot write"));
        }
    }
    let types: Vec<TensorType> = l.inputs.iter().map(Operand::ty).collect();
    // A state write has no output in a graph; in a plan its output is the slot.
    let have: Vec<TensorType> =
        if matches!(l.op, Op::StateWrite(_)) { vec![] } else { l.outputs.iter().map(Operand::ty).collect() };
    l.op.check(&types.iter().collect::<Vec<_>>(), &have.iter().collect::<Vec<_>>())
}

/// The bytes of a place that an operand may touch, from first to last.
fn range(o: &Operand) -> (usize, usize) {
    let base = if let Place::Arena(at) = o.place { at } else { 0 };
    (base + o.view.offset * o.dtype.size(), base + o.end_bytes())
}

fn overlap(a: &Operand, b: &Operand) -> bool {
    let same_room = match (a.place, b.place) {
        (Place::Arena(_), Place::Arena(_)) => true,
        (x, y) => x == y,
    };
    let ((a0, a1), (b0, b1)) = (range(a), range(b));
    // Interleaved views of one tensor (parts of a concat) do not meet although their ranges do.
    let apart = || a.place == b.place && a.dtype == b.dtype && a.view.is_apart_from(&b.view);
    same_room && a0 < b1 && b0 < a1 && !apart()
}

/// No launch overlaps its own operands but in place, and launches that are not ordered share memory only to read.
fn races(p: &Plan) -> Result<(), String> {
    let order = HappensBefore::new(p.launches.iter().map(|l| (l.branch, &l.after[..])));
    for (i, l) in p.launches.iter().enumerate() {
        for (o, out) in l.outputs.iter().enumerate() {
            let same = |x: &Operand| x.view == out.view && x.dtype == out.dtype;
            let in_place = |input: usize| l.op.in_place().contains(&(o, input)) && same(&l.inputs[input]);
            let clash = l.inputs.iter().enumerate().any(|(j, x)| overlap(out, x) && !in_place(j))
                || l.outputs[..o].iter().any(|x| overlap(out, x));
            if clash {
                return Err(format!("launch {i} ({}): output {o} overlaps another operand", l.op));
            }
        }
        for (j, k) in p.launches[..i].iter().enumerate().filter(|(j, _)| !order.holds(*j, i)) {
            let meets = |writes: &[Operand], l: &Launch| {
                writes.iter().any(|w| l.inputs.iter().chain(&l.outputs).any(|o| overlap(w, o)))
            };
            if meets(&k.outputs, l) || meets(&l.outputs, k) {
                return Err(format!(
                    "launches {j} ({}) and {i} ({}) race: they share memory unordered",
                    k.op, l.op
                ));
            }
        }
    }
    Ok(())
}
