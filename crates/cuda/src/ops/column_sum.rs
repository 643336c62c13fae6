//! Sums of the columns of an f32 matrix in a workspace: the last step of sums that many blocks share.

use crate::lower::{Arg, Call, Defines, KernelCall, c_type};
use ocelli_ir::DType;

/// `to[c] = sum over r of from[r, c]`, in a fixed order, `from` f32 `[rows, cols]`.
pub fn call(from: Arg, rows: usize, cols: usize, to: Arg, dtype: DType) -> Call {
    let defines = Defines::new().with("ROWS", rows).with("COLS", cols).with("T", c_type(dtype));
    Call::Kernel(KernelCall {
        entry: "column_sum",
        source: defines.source(include_str!("column_sum.cu")),
        grid: [cols.div_ceil(32).max(1) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: vec![from, to],
    })
}

/// The same for two matrices side by side, `from` f32 `[rows, 2 cols]`, to two places of one type.
pub fn pair(from: Arg, rows: usize, cols: usize, to: [Arg; 2], dtype: DType) -> Call {
    let defines =
        Defines::new().with("ROWS", rows).with("COLS", 2 * cols).with("FIRST", cols).with("T", c_type(dtype));
    Call::Kernel(KernelCall {
        entry: "column_sum",
        source: defines.source(include_str!("column_sum.cu")),
        grid: [(2 * cols).div_ceil(32).max(1) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: vec![from, to[0], to[1]],
    })
}
