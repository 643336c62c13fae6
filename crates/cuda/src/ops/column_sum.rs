//! Sums of the columns of f32 matrices in a workspace: the last step of sums that many blocks share.

use crate::lower::{Arg, Call, Defines, KernelCall, c_type};
use ocelli_ir::DType;

/// `to[j][c] = sum over r of from[r, j, c]`, in a fixed order, `from` f32 `[rows, to.len(), cols]`.
pub fn call(from: Arg, rows: usize, cols: usize, to: &[Arg], dtype: DType) -> Call {
    let all = cols * to.len();
    let names: Vec<String> = (0..to.len()).map(|j| format!("to{j}")).collect();
    let params: String = names.iter().map(|n| format!(", T* {n}")).collect();
    let defines = Defines::new()
        .with("ROWS", rows)
        .with("COLS", cols)
        .with("ALL", all)
        .with("T", c_type(dtype))
        .with("TO_PARAMS", params)
        .with("TO", names.join(", "));
    Call::Kernel(KernelCall {
        entry: "column_sum",
        source: defines.source(include_str!("column_sum.cu")),
        grid: [all.div_ceil(32).max(1) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: [&[from], to].concat(),
    })
}
