//! Where results go without a copy: parts straight into the `concat` that joins them, updates straight into
//! their state slot.

use super::{Buffer, Draft, Drafts, Home, Loc};
use ocelli_ir::executor::Target;
use ocelli_ir::ops::{Contiguous, StateWrite};
use ocelli_ir::{Op, Phase, SlotId, StateSpec, View};
use std::sync::Arc;

/// Drops each `concat` whose parts can all be written in place by the launches that make them.
pub(super) fn into_concats(drafts: &mut Drafts, target: &dyn Target) {
    let mut i = 0;
    while i < drafts.launches.len() {
        match redirections(drafts, i, target) {
            Some(moves) => {
                let joined = drafts.launches.remove(i).outputs[0].buffer;
                for (launch, output, view) in moves {
                    drafts.launches[launch].outputs[output] = Loc { buffer: joined, view };
                }
            }
            None => i += 1,
        }
    }
}

/// For the `concat` at `index`: which output of which launch goes where, if that works for all its parts.
fn redirections(drafts: &Drafts, index: usize, target: &dyn Target) -> Option<Vec<(usize, usize, View)>> {
    let Draft { op: Op::Concat(op), inputs, outputs, .. } = &drafts.launches[index] else { return None };
    let lens: Vec<usize> = inputs.iter().map(|loc| loc.view.shape[op.axis]).collect();
    let places = op.places(&outputs[0].view, &lens);
    inputs.iter().zip(places).map(|(part, place)| redirection(drafts, index, part, &place, target)).collect()
}

fn redirection(
    drafts: &Drafts,
    concat: usize,
    part: &Loc,
    place: &View,
    target: &dyn Target,
) -> Option<(usize, usize, View)> {
    let reads = |loc: &Loc| loc.buffer == part.buffer;
    let elsewhere =
        drafts.launches.iter().enumerate().any(|(i, l)| i != concat && l.inputs.iter().any(reads))
            || drafts.launches[concat].inputs.iter().filter(|l| reads(l)).count() > 1
            || drafts.outputs.iter().any(|(_, loc)| reads(loc))
            || drafts.writes.iter().any(|(_, loc, _)| reads(loc));
    if elsewhere || drafts.buffers[part.buffer].home != Home::Scratch || !drafts.is_whole(part) {
        return None;
    }
    let (launch, output) = producer(drafts, part.buffer)?;
    let made = &drafts.launches[launch].outputs[output];
    let view = place.reshape(&made.view.shape)?;
    (drafts.is_whole(made) && target.writes_view(&drafts.launches[launch].op, output, &view))
        .then_some((launch, output, view))
}

/// The one launch output that fills a scratch buffer.
fn producer(drafts: &Drafts, buffer: usize) -> Option<(usize, usize)> {
    let mut found = drafts.launches.iter().enumerate().flat_map(|(i, l)| {
        l.outputs.iter().enumerate().filter(move |(_, o)| o.buffer == buffer).map(move |(o, _)| (i, o))
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Carries out the state writes: in place where the op allows it and no one reads the old contents later, the other
/// writes included, else by a copy at the end of the program.
pub(super) fn writes(drafts: &mut Drafts, state: &StateSpec) {
    // The list stays whole until each write is decided: a write of one slot may read another's old contents.
    let fits: Vec<bool> = (0..drafts.writes.len()).map(|i| in_place(drafts, i)).collect();
    let writes = std::mem::take(&mut drafts.writes).into_iter().zip(fits);
    let at_end: Vec<_> = writes.filter(|(_, in_place)| !in_place).map(|(write, _)| write).collect();
    let written = |slot: SlotId| at_end.iter().any(|(s, _, _)| *s == slot);
    // Whoever still wants the old contents of a slot that is overwritten at the end gets a copy first.
    let overwritten = |drafts: &Drafts, loc: &Loc| match drafts.buffers[loc.buffer].home {
        Home::State(slot) => written(slot),
        _ => false,
    };
    let mut outputs = std::mem::take(&mut drafts.outputs);
    for (_, loc) in &mut outputs {
        if overwritten(drafts, loc) {
            *loc = copied(drafts, loc, &"".into());
        }
    }
    drafts.outputs = outputs;
    let mut sources = Vec::new();
    for (_, from, scope) in &at_end {
        sources.push(if overwritten(drafts, from) { copied(drafts, from, scope) } else { from.clone() });
    }
    for ((slot, _, scope), from) in at_end.into_iter().zip(sources) {
        let ty = state.get(slot).ty.clone();
        let view = View::contiguous(ty.shape.clone());
        drafts.buffers.push(Buffer { home: Home::State(slot), ty: ty.clone() });
        let output = Loc { buffer: drafts.buffers.len() - 1, view };
        let from = if from.view.is_contiguous() { from } else { copied(drafts, &from, &scope) };
        let op = StateWrite { slot, ty }.into();
        let (phase, inputs, outputs) = (Phase::Update, vec![from], vec![output]);
        drafts.launches.push(Draft { op, scope, phase, inputs, outputs });
    }
}

fn copied(drafts: &mut Drafts, from: &Loc, scope: &Arc<str>) -> Loc {
    let copy = drafts.scratch(drafts.loc_ty(from));
    let (inputs, outputs) = (vec![from.clone()], vec![copy.clone()]);
    let (op, scope, phase) = (Contiguous.into(), scope.clone(), Phase::Update);
    drafts.launches.push(Draft { op, scope, phase, inputs, outputs });
    copy
}

/// Lets the launch that makes the contents of write number `index` put them into the slot itself, if that is sound;
/// says whether it was.
fn in_place(drafts: &mut Drafts, index: usize) -> bool {
    let (slot, from, _) = &drafts.writes[index];
    let (slot, buffer) = (*slot, from.buffer);
    if drafts.buffers[buffer].home != Home::Scratch || !drafts.is_whole(from) {
        return false;
    }
    let Some((launch, output)) = producer(drafts, buffer) else { return false };
    let is_old = |loc: &Loc| drafts.buffers[loc.buffer].home == Home::State(slot);
    let made = &drafts.launches[launch];
    let paired = made.op.in_place().iter().find(|(o, _)| *o == output).map(|(_, i)| *i);
    let paired = paired.filter(|&i| is_old(&made.inputs[i]) && drafts.is_whole(&made.inputs[i]));
    let read_again = made.inputs.iter().enumerate().any(|(i, loc)| Some(i) != paired && is_old(loc))
        || drafts.launches[launch + 1..].iter().any(|l| l.inputs.iter().any(is_old))
        || drafts.outputs.iter().any(|(_, loc)| is_old(loc))
        || drafts.writes.iter().any(|(_, loc, _)| is_old(loc));
    if !read_again {
        drafts.buffers[buffer].home = Home::State(slot);
    }
    !read_again
}
