//! Checks every launch of a plan before anything runs, so that a bad plan is an error and never undefined
//! behaviour. What holds afterwards is listed in [`crate::mem`].

use crate::buffer::ALIGNMENT;
use crate::layout::{Layout, MAX_RANK};
use crate::mem::{Loc, Room, Wide};
use crate::ops::{Needs, kernel_for};
use ocelli_ir::ops::StateWrite;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::{Op, TensorType};

/// Why a plan is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The plan breaks its own invariants.
    Wrong(String),
    /// The plan needs what this executor lacks.
    Lacking(String),
}

/// A launch with its operands found.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Arguments.
    pub ins: Vec<Loc>,
    /// Results.
    pub outs: Vec<Loc>,
    /// The operands as the kernel sees them, if some are stored in 16 bits.
    pub wide: Option<Wide>,
    /// Memory that the kernel uses.
    pub needs: Needs,
    /// There is no kernel: the reference evaluation runs.
    pub fallback: bool,
}

fn wrong<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Wrong(message.into()))
}

fn lacking<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Lacking(message.into()))
}

/// Checks launch `index` of a plan.
///
/// # Errors
/// The first thing that is not as it must be.
pub fn launch(plan: &Plan, index: usize) -> Result<Loaded, Fault> {
    let l = &plan.launches[index];
    if matches!(l.op, Op::Input(_) | Op::StateRead(_)) {
        return wrong("is memory, not a launch");
    }
    if l.after.iter().any(|&a| a >= index) {
        return wrong("waits for a later launch");
    }
    let find = |o: &Operand| operand(plan, o);
    let mut ins = l.inputs.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let outs = l.outputs.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let types: Vec<TensorType> = l.inputs.iter().map(Operand::ty).collect();
    let have: Vec<TensorType> = l.outputs.iter().map(Operand::ty).collect();
    match &l.op {
        Op::StateWrite(op) => slot_type(op, l)?,
        op => op
            .check(&types.iter().collect::<Vec<_>>(), &have.iter().collect::<Vec<_>>())
            .map_err(Fault::Wrong)?,
    }
    let types = widened(&types);
    views(l, &types)?;
    overlaps(l, &mut ins, &outs)?;
    let wide = Wide::new(&ins, &outs);
    let needs = kernel_for(&l.op, &types).map(|k| k.needs(&types));
    Ok(Loaded { ins, outs, wide, needs: needs.unwrap_or_default(), fallback: needs.is_none() })
}

/// Types of inputs as kernels see them.
pub fn widened(types: &[TensorType]) -> Vec<TensorType> {
    let wide =
        |ty: &TensorType| if ty.dtype.is_float() { TensorType::f32(ty.shape.clone()) } else { ty.clone() };
    types.iter().map(wide).collect()
}

/// The output of a state write: in a plan, that is the slot.
fn slot_type(op: &StateWrite, l: &Launch) -> Result<(), Fault> {
    let slot = l.outputs.first().map(|o| o.place);
    match &l.inputs[..] {
        [value]
            if value.ty() == op.ty && slot == Some(Place::State(op.slot)) && l.outputs[0].ty() == op.ty =>
        {
            Ok(())
        }
        _ => wrong("must write one value of its type to its slot"),
    }
}

/// Finds an operand in its place.
///
/// # Errors
/// If it does not lie inside, or is of a type or rank that is not stored here.
pub fn operand(plan: &Plan, o: &Operand) -> Result<Loc, Fault> {
    let (view, size) = (&o.view, o.dtype.size());
    if view.shape.len() > MAX_RANK {
        return lacking(format!("rank {} is above {MAX_RANK}", view.shape.len()));
    }
    if view.shape.len() != view.strides.len() {
        return wrong(format!("view {view:?} has another number of strides than axes"));
    }
    let (room, start, bytes) = match o.place {
        Place::Arena(at) if at % size != 0 => return wrong(format!("arena offset {at} is not aligned")),
        Place::Arena(at) => (Room::Arena, at, plan.arena_bytes),
        Place::State(slot)
            if (slot.0 as usize) < plan.state.len() && plan.state.get(slot).ty.dtype == o.dtype =>
        {
            (Room::Slot(slot.0 as usize), 0, plan.state.get(slot).ty.bytes())
        }
        Place::State(slot) => return wrong(format!("there is no {} slot {}", o.dtype, slot.0)),
        Place::Input(i) => match plan.inputs.get(i) {
            Some((_, ty)) if ty.dtype == o.dtype => (Room::Input(i), 0, ty.bytes()),
            _ => return wrong(format!("there is no {} input {i}", o.dtype)),
        },
    };
    let byte = view.offset.checked_mul(size).and_then(|b| b.checked_add(start));
    let end = span(&view.shape, &view.strides).and_then(|n| n.checked_mul(size)).zip(byte);
    match (end.and_then(|(n, b)| n.checked_add(b)), byte) {
        (Some(end), Some(byte)) if end <= bytes => {
            Ok(Loc { room, byte, dtype: o.dtype, layout: Layout::of(view), absent: false })
        }
        _ => wrong(format!("view {view:?} ends outside its {bytes} bytes")),
    }
}

/// One past the last element counted from the first; none if a number overflows.
fn span(shape: &[usize], strides: &[usize]) -> Option<usize> {
    // Far below the limit, so that kernels may multiply a number of elements by small factors.
    let numel = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    if numel > isize::MAX as usize / 4096 {
        return None;
    }
    if numel == 0 {
        return Some(0);
    }
    shape.iter().zip(strides).try_fold(1usize, |end, (&n, &s)| end.checked_add((n - 1).checked_mul(s)?))
}

/// Views only where the kernel takes them.
fn views(l: &Launch, types: &[TensorType]) -> Result<(), Fault> {
    let kernel = kernel_for(&l.op, types);
    for (i, o) in l.inputs.iter().enumerate() {
        if !o.view.is_contiguous() && !kernel.is_some_and(|k| k.reads(i, &o.view)) {
            return wrong(format!("input {i} is a view that its kernel cannot read"));
        }
    }
    for (i, o) in l.outputs.iter().enumerate() {
        if !o.view.is_contiguous() && !kernel.is_some_and(|k| k.writes(i, &o.view)) {
            return wrong(format!("output {i} is a view that its kernel cannot write"));
        }
        if !is_injective(&Layout::of(&o.view)) {
            return wrong(format!("output {i} has elements that share memory"));
        }
    }
    Ok(())
}

/// True if each stride leaves room for all that smaller strides reach: then no element is touched twice.
fn is_injective(l: &Layout) -> bool {
    let mut axes: Vec<(usize, usize)> =
        l.strides().iter().copied().zip(l.shape().iter().copied()).filter(|(_, n)| *n > 1).collect();
    axes.sort_unstable();
    let mut reach = 0;
    l.numel() == 0
        || axes.iter().all(|&(stride, n)| {
            let fits = stride > reach;
            reach += (n - 1) * stride;
            fits
        })
}

/// No output meets another operand but in place; inputs of in-place pairs become absent.
fn overlaps(l: &Launch, ins: &mut [Loc], outs: &[Loc]) -> Result<(), Fault> {
    for (o, out) in outs.iter().enumerate() {
        if matches!(out.room, Room::Input(_)) {
            return wrong(format!("output {o} lies in a program input"));
        }
        for (i, x) in ins.iter_mut().enumerate().filter(|(_, x)| ranges_meet(out, x)) {
            let paired = l.op.in_place().contains(&(o, i));
            if !paired || out.byte != x.byte || out.dtype != x.dtype || l.outputs[o].view != l.inputs[i].view
            {
                return wrong(format!("output {o} overlaps input {i}"));
            }
            x.absent = true;
        }
        // Parts of one packed tensor interleave without meeting.
        let apart = |p: usize| {
            let (a, b) = (&l.outputs[o], &l.outputs[p]);
            a.place == b.place && a.dtype == b.dtype && a.view.is_apart_from(&b.view)
        };
        if let Some(p) = (0..o).find(|&p| ranges_meet(out, &outs[p]) && !apart(p)) {
            return wrong(format!("output {o} overlaps output {p}"));
        }
    }
    Ok(())
}

fn range(l: &Loc) -> (usize, usize) {
    (l.byte, l.byte + l.layout.end() * l.dtype.size())
}

fn ranges_meet(a: &Loc, b: &Loc) -> bool {
    let ((a0, a1), (b0, b1)) = (range(a), range(b));
    a.room == b.room && a0 < b1 && b0 < a1
}

/// Bytes to have for a plan's arena.
pub fn arena_bytes(plan: &Plan) -> usize {
    plan.arena_bytes.max(ALIGNMENT)
}
