//! `gather_rows`: an embedding. An index outside the table gives zeros and reads nothing.

use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Lowered, Lowering};
use ocelli_ir::DType;

pub fn lower(cx: &Lowering) -> Option<Lowered> {
    let ([table, ids], [y]) = (&cx.ins[..], &cx.outs[..]) else { return None };
    let &[rows, width] = table.shape() else { return None };
    let n = ids.view.shape.numel();
    let read = Access {
        arg: Arg::In(0, 0),
        dtype: table.dtype,
        align: table.align,
        place: Place::At(format!("id * {width}u + first"), 1, Some(format!("id < {rows}u"))),
    };
    let write =
        Access { arg: Arg::Out(0, 0), dtype: y.dtype, align: y.align, place: Place::Strides(vec![width, 1]) };
    let one = Loop {
        space: vec![n, width],
        reads: vec![read],
        writes: vec![write],
        extra: vec![(Arg::In(1, 0), DType::U32)],
        prologue: format!("    const {} id = q0[c0];\n", if rows * width < 1 << 31 { "u32" } else { "u64" }),
        body: "        const float y0 = x0;\n".into(),
        coordinates: true,
        ..Loop::default()
    };
    Some(Lowered::kernel(one.kernel()))
}
