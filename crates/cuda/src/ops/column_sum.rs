//! Sums of the columns of f32 matrices in a workspace: the last step of sums that many blocks share.

use crate::lower::{ALIGNMENT, Arg, Call, Defines, KernelCall, LateSums, Lowered, c_type};
use ocelli_ir::DType;

/// Most bytes that a launch keeps for late sums: a launch that has more to add is long, and its sums beside it short.
const MOST_KEPT: usize = 4 << 20;
/// Columns of a block.
const WIDTH: usize = 32;
/// Warps of a block that adds for several launches.
const GROUPS: usize = 32;

/// `to[c] = sum over r of from[r, c]`, in a fixed order, `from` f32 `[rows, cols]`.
pub fn call(from: Arg, rows: usize, cols: usize, to: Arg, dtype: DType) -> Call {
    let defines = Defines::new().with("ROWS", rows).with("COLS", cols).with("T", c_type(dtype));
    Call::Kernel(KernelCall {
        entry: "column_sum",
        source: defines.source(include_str!("column_sum.cu")),
        grid: [cols.div_ceil(WIDTH).max(1) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: vec![from, to],
    })
}

/// Sums that are to be made of what a kernel leaves behind.
pub struct Sums {
    /// Where the kernel leaves f32 `[rows, to.len(), cols]`.
    pub parts: Arg,
    rest: LateSums,
}

impl Sums {
    /// Room for the parts, where few are kept and others are not.
    pub fn new(done: &mut Lowered, rows: usize, cols: usize, to: &[Arg]) -> Self {
        let bytes = rows * cols * to.len() * size_of::<f32>();
        if bytes > MOST_KEPT {
            return Self::now(done, rows, cols, to);
        }
        let at = done.kept;
        done.kept = (at + bytes).next_multiple_of(ALIGNMENT);
        Self::of(Arg::Kept(at), rows, cols, to)
    }

    /// Room for parts that are added right behind the kernel: large ones, which are still in the cache then.
    pub fn now(done: &mut Lowered, rows: usize, cols: usize, to: &[Arg]) -> Self {
        let parts = done.reserve(rows * cols * to.len() * size_of::<f32>());
        Self::of(parts, rows, cols, to)
    }

    fn of(parts: Arg, rows: usize, cols: usize, to: &[Arg]) -> Self {
        Self { parts, rest: LateSums { from: parts, rows, cols, to: to.to_vec() } }
    }

    /// Sums, behind the kernel that leaves their parts: now, all at once, or late.
    pub fn make(sums: impl IntoIterator<Item = Self>, done: &mut Lowered) {
        let (kept, rest): (Vec<_>, Vec<_>) =
            sums.into_iter().map(|s| s.rest).partition(|s| matches!(s.from, Arg::Kept(_)));
        done.late.extend(kept);
        let now = late(&rest);
        done.table.extend(now.table);
        done.calls.extend(now.calls);
    }
}

/// Sums of several launches in one.
pub fn late(sums: &[LateSums]) -> Lowered {
    let mut done = Lowered::default();
    for s in sums {
        let pitch = s.cols * s.to.len();
        // Few terms are a thread's, many those of all warps.
        let width = if s.rows <= GROUPS { 32 * GROUPS } else { WIDTH };
        for (j, to) in s.to.iter().enumerate() {
            for first in (0..s.cols).step_by(width) {
                let at = |col: usize| col * size_of::<f32>();
                done.table.push((s.from.further(at(j * s.cols + first)), (s.rows | pitch << 32) as u64));
                done.table.push((to.further(at(first)), (s.cols - first).min(width) as u64));
            }
        }
    }
    if done.table.is_empty() {
        return done;
    }
    done.calls.push(Call::Kernel(KernelCall {
        entry: "column_sums",
        source: Defines::new().with("GROUPS", GROUPS).source(include_str!("column_sums.cu")),
        grid: [(done.table.len() / 2) as u32, 1, 1],
        block: 32 * GROUPS as u32,
        shared: 0,
        args: vec![Arg::Table],
    }));
    done
}
