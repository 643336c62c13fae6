//! `softmax` over the last axis: a warp a row.

use crate::lower::{Arg, Defines, KernelCall, Lowered, Lowering, c_type};

pub fn lower(cx: &Lowering) -> Option<Lowered> {
    let (x, y) = (&cx.ins[0], &cx.outs[0]);
    let (rows, cols) = x.view.shape.rows();
    let defines = Defines::new()
        .with("ROWS", rows)
        .with("COLS", cols)
        .with("TX", c_type(x.dtype))
        .with("TY", c_type(y.dtype));
    Some(Lowered::kernel(KernelCall {
        entry: "softmax",
        source: defines.source(include_str!("softmax.cu")),
        grid: [rows.div_ceil(8).max(1) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: vec![Arg::In(0, 0), Arg::Out(0, 0)],
    }))
}
