//! `dropout`: each element kept or not by its coordinates alone.

use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Lowered, Lowering, c_float};
use ocelli_ir::ops::DropoutOp;
use ocelli_ir::{DType, View};

/// Batch, rows and columns, the coordinates of a decision.
pub fn space(shape: &[usize]) -> Vec<usize> {
    let (batch, cols) = (shape[0], if shape.len() > 1 { shape[shape.len() - 1] } else { 1 });
    vec![batch, shape.iter().product::<usize>() / (batch * cols).max(1), cols]
}

/// Statements before and at an element of that space; `q` is the number of the first of the three keys. One call of Philox
/// decides eight columns, as many as a thread takes at most.
pub fn statements(op: &DropoutOp, q: usize) -> [String; 2] {
    let (threshold, site) = (op.dropout.threshold, op.dropout.site);
    let prologue = format!(
        "    const uint2 key{q} = dropout_key(q{q}[0], q{q}[1], {:#x}u, {:#x}u);\n    \
         const uint4 words{q} = dropout_row(key{q}, q{}[0], q{}[c0], c1, first / 8u);\n",
        site as u32,
        (site >> 32) as u32,
        q + 1,
        q + 2
    );
    let body = format!(
        "        const bool keep = dropout_keeps(words{q}, c2, {threshold}u);\n        \
         const float y0 = keep ? x0 * {} : 0.0f;\n",
        c_float(op.dropout.scale())
    );
    [prologue, body]
}

pub fn lower(op: &DropoutOp, cx: &Lowering) -> Option<Lowered> {
    by_coordinates(cx, space(cx.ins.first()?.shape()), statements(op, 0))
}

/// A kernel over a space of the first input without gaps, whose statements use the three keys as `q0`, `q1` and `q2`.
pub fn by_coordinates(cx: &Lowering, space: Vec<usize>, [prologue, body]: [String; 2]) -> Option<Lowered> {
    let (x, y) = (cx.ins.first()?, cx.outs.first()?);
    let strides = View::contiguous(space.clone()).strides;
    let at = |arg, dtype, align| Access { arg, dtype, align, place: Place::Strides(strides.clone()) };
    let one = Loop {
        space,
        reads: vec![at(Arg::In(0, 0), x.dtype, x.align)],
        writes: vec![at(Arg::Out(0, 0), y.dtype, y.align)],
        extra: (1..4).map(|i| (Arg::In(i, 0), DType::U32)).collect(),
        prologue,
        body,
        coordinates: true,
        ..Loop::default()
    };
    Some(Lowered::kernel(one.kernel()))
}
