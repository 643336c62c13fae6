//! Ops that only move elements: copies of views, joins, pads, writes at a place known at run time.

use super::arithmetic::broadcast;
use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Call, Lowered, Lowering, Tensor, align_at};
use ocelli_ir::ops::UpdateSlice;
use ocelli_ir::{DType, Op, View};

/// True if this file lowers the op.
pub fn is(op: &Op) -> bool {
    matches!(
        op,
        Op::Contiguous(_)
            | Op::StateWrite(_)
            | Op::Reshape(_)
            | Op::Permute(_)
            | Op::Broadcast(_)
            | Op::Slice(_)
            | Op::Split(_)
            | Op::Concat(_)
            | Op::Pad(_)
            | Op::Patchify(_)
            | Op::Unpatchify(_)
            | Op::UpdateSlice(_)
    )
}

/// True if inputs may be views with gaps.
pub fn reads(op: &Op) -> bool {
    !matches!(op, Op::Reshape(_) | Op::Unpatchify(_))
}

/// True if outputs may be views with gaps.
pub fn writes(op: &Op) -> bool {
    !matches!(op, Op::Reshape(_) | Op::Patchify(_) | Op::StateWrite(_))
}

/// The copies.
pub fn lower(op: &Op, cx: &Lowering) -> Option<Lowered> {
    let mut done = Lowered::default();
    let (x, y) = (cx.ins.first()?, cx.outs.first()?);
    match op {
        Op::Contiguous(_) | Op::StateWrite(_) => done.copy((IN, x, &x.view), (OUT, y, &y.view))?,
        Op::Reshape(_) => done.copy((IN, x, &x.view), (OUT, y, &y.view.reshape(&x.view.shape)?))?,
        Op::Permute(_) | Op::Broadcast(_) | Op::Slice(_) | Op::Split(_) => {
            let from = View { offset: 0, ..x.view.clone() };
            for (i, (part, y)) in op.alias(&from)?.iter().zip(&cx.outs).enumerate() {
                let (arg, x) = shifted(Arg::In(0, 0), x, part);
                done.copy((arg, &x, part), (Arg::Out(i, 0), y, &y.view))?;
            }
        }
        Op::Concat(op) => {
            let lens: Vec<usize> = cx.ins.iter().map(|t| t.shape()[op.axis]).collect();
            let whole = View { offset: 0, ..y.view.clone() };
            for (i, (x, part)) in cx.ins.iter().zip(op.places(&whole, &lens)).enumerate() {
                let (arg, y) = shifted(OUT, y, &part);
                done.copy((Arg::In(i, 0), x, &x.view), (arg, &y, &part))?;
            }
        }
        Op::Pad(op) => {
            let whole = View { offset: 0, ..y.view.clone() };
            done.fill(OUT, y)?;
            let part = op.place(&whole, x.shape()[op.axis]);
            let (arg, y) = shifted(OUT, y, &part);
            done.copy((IN, x, &x.view), (arg, &y, &part))?;
        }
        Op::Patchify(op) => {
            let from = op.view(&View { offset: 0, ..x.view.clone() });
            let to = y.view.reshape(&from.shape)?;
            done.copy((IN, x, &from), (OUT, y, &to))?;
        }
        Op::Unpatchify(op) => {
            let patch = ocelli_ir::ops::Patchify { patch: op.patch };
            let to = patch.view(&View { offset: 0, ..y.view.clone() });
            done.copy((IN, x, &x.view.reshape(&to.shape)?), (OUT, y, &to))?;
        }
        Op::UpdateSlice(op) => update(op, cx, &mut done)?,
        _ => return None,
    }
    Some(done)
}

const IN: Arg = Arg::In(0, 0);
const OUT: Arg = Arg::Out(0, 0);

/// A part of a tensor by its view, whose offset becomes part of the address.
fn shifted(arg: Arg, t: &Tensor, part: &View) -> (Arg, Tensor) {
    let bytes = part.offset * t.dtype.size();
    (arg.further(bytes), Tensor { align: align_at(t.align, bytes), ..t.clone() })
}

impl Lowered {
    /// Copies the elements of one view to another of the same shape.
    fn copy(&mut self, from: (Arg, &Tensor, &View), to: (Arg, &Tensor, &View)) -> Option<()> {
        let space = &to.2.shape;
        if space.numel() == 0 {
            return Some(());
        }
        let access = |(arg, t, view): (Arg, &Tensor, &View)| Access {
            arg,
            dtype: t.dtype,
            align: t.align,
            place: Place::Strides(view.strides.clone()),
        };
        let from = broadcast(from.0, &Tensor { view: from.2.clone(), ..from.1.clone() }, space)?;
        let one = Loop::copy(space.0.clone(), from, access(to));
        self.calls.push(Call::Kernel(one.kernel()));
        Some(())
    }

    /// Zeros.
    fn fill(&mut self, arg: Arg, t: &Tensor) -> Option<()> {
        let space = &t.view.shape;
        let body = format!("        const {} y0 = 0;\n", if t.dtype.is_float() { "float" } else { "u32" });
        let writes = vec![broadcast(arg, t, space)?];
        let one = Loop { space: space.0.clone(), writes, body, ..Loop::default() };
        self.calls.push(Call::Kernel(one.kernel()));
        Some(())
    }
}

/// The base, unless it is there already, then the patch at its place, wrapping around.
fn update(op: &UpdateSlice, cx: &Lowering, done: &mut Lowered) -> Option<()> {
    let ([base, patch, _], [y]) = (&cx.ins[..], &cx.outs[..]) else { return None };
    if !cx.in_place {
        done.copy((IN, base, &base.view), (OUT, y, &y.view))?;
    }
    let (axis, extent, strides) = (op.axis, y.shape()[op.axis], &y.view.strides);
    let last = y.shape().len() - 1;
    let term = |i: usize| {
        let c = if i == last { "first".to_string() } else { format!("c{i}") };
        let c = if i == axis { format!("((start + {c}) % {extent}u)") } else { c };
        format!("{c} * {}u", strides[i])
    };
    let at = (0..=last).map(term).collect::<Vec<_>>().join(" + ");
    // A thread takes neighbours only if they stay neighbours and start where the width allows it.
    let rows = strides[..last].iter().all(|s| (s * y.dtype.size()).is_multiple_of(16));
    let align = if axis != last && rows { y.align } else { 1 };
    let space = patch.view.shape.clone();
    let one = Loop {
        space: space.0.clone(),
        reads: vec![broadcast(Arg::In(1, 0), patch, &space)?],
        writes: vec![Access { arg: OUT, dtype: y.dtype, align, place: Place::At(at, strides[last], None) }],
        extra: vec![(Arg::In(2, 0), DType::U32)],
        prologue: "    const u32 start = q0[0];\n".into(),
        body: format!("        const {} y0 = x0;\n", if patch.dtype.is_float() { "float" } else { "u32" }),
        coordinates: true,
        ..Loop::default()
    };
    done.calls.push(Call::Kernel(one.kernel()));
    Some(())
}
