//! `scatter_rows`: rows added up by index, each sum in the order of the rows: no atomic operation.
//!
//! A block takes one row of the result, some columns and a range of ids; it looks at every id of its range and adds the rows
//! that are its own. If there are several ranges, their sums are added in order.

use super::column_sum;
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Lowering, c_type};
use ocelli_ir::DType;
use ocelli_ir::ops::ScatterRows;

pub fn lower(op: &ScatterRows, cx: &Lowering) -> Option<Lowered> {
    let (ids, rows, y) = (&cx.ins[0], &cx.ins[1], &cx.outs[0]);
    let (n, cols) = (ids.view.shape.numel(), rows.view.shape.last().copied()?);
    let mut done = Lowered::default();
    if n == 0 || cols == 0 {
        done.calls.push(Call::Zero(Arg::Out(0, 0), y.ty().bytes()));
        return Some(done);
    }
    // Few rows, such as characters, are long sums: they are shared by many blocks.
    let splits = (8 * cx.machine.processors / op.rows.max(1)).clamp(1, n.div_ceil(256));
    let (to, dtype) = match splits {
        1 => (Arg::Out(0, 0), y.dtype),
        _ => (done.reserve(splits * op.rows * cols * size_of::<f32>()), DType::F32),
    };
    let defines = Defines::new().with("N", n).with("ROWS", op.rows).with("COLS", cols).with("SPLITS", splits);
    let source = defines
        .with("T", c_type(rows.dtype))
        .with("TO", c_type(dtype))
        .source(include_str!("scatter_rows.cu"));
    done.calls.push(Call::Kernel(KernelCall {
        entry: "scatter_rows",
        source,
        grid: [op.rows as u32, cols.div_ceil(128) as u32, splits as u32],
        block: 128,
        shared: 0,
        args: vec![Arg::In(0, 0), Arg::In(1, 0), to],
    }));
    if splits > 1 {
        done.calls.push(column_sum::call(to, splits, op.rows * cols, Arg::Out(0, 0), y.dtype));
    }
    Some(done)
}
