//! `cross_entropy` and its gradient: a warp a row of logits; the losses of the rows are added in their order.

use super::column_sum;
use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Lowering, Matrix, c_type};
use ocelli_ir::DType;

/// Blocks of `rows` rows, eight a block.
fn blocks(rows: usize) -> usize {
    rows.div_ceil(8).max(1)
}

/// The call that finds the lse of each row and each block's loss. `logits` are `[rows, cols]` without gaps.
pub fn losses(
    logits: (Arg, DType),
    [rows, cols]: [usize; 2],
    [targets, weights, lse, sums]: [Arg; 4],
) -> Call {
    let defines = Defines::new().with("ROWS", rows).with("COLS", cols).with("T", c_type(logits.1));
    Call::Kernel(KernelCall {
        entry: "cross_entropy",
        source: defines.source(include_str!("cross_entropy.cu")),
        grid: [blocks(rows) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: vec![logits.0, targets, weights, lse, sums],
    })
}

/// Number of sums that [`losses`] leaves.
pub fn parts(rows: usize) -> usize {
    blocks(rows)
}

pub fn forward(cx: &Lowering) -> Option<Lowered> {
    let &[rows, cols] = cx.ins[0].shape() else { return None };
    let mut done = Lowered::default();
    let sums = done.reserve(parts(rows) * size_of::<f32>());
    let arg = |i| Arg::In(i, 0);
    done.calls.push(losses((arg(0), cx.ins[0].dtype), [rows, cols], [arg(1), arg(2), Arg::Out(1, 0), sums]));
    done.calls.push(column_sum::call(sums, parts(rows), 1, Arg::Out(0, 0), DType::F32));
    Some(done)
}

/// The call that turns logits `[rows, cols]` into their gradient, perhaps in place. `others` are targets, weights, lse and
/// dloss.
pub fn gradient(logits: Matrix, to: Matrix, [rows, cols]: [usize; 2], others: [Arg; 4]) -> Call {
    let access = |m: Matrix| Access {
        arg: m.arg,
        dtype: m.dtype,
        align: m.align,
        place: Place::Strides(vec![m.row, 1]),
    };
    let one = Loop {
        space: vec![rows, cols],
        reads: vec![access(logits)],
        writes: vec![access(to)],
        extra: others.into_iter().zip([DType::U32, DType::F32, DType::F32, DType::F32]).collect(),
        prologue: format!(
            "    const u32 target = q0[c0];\n    const float weight = target < {cols}u ? q1[c0] : 0.0f;\n    \
             const float lse = q2[c0], dloss = q3[0];\n"
        ),
        body: "        const float y0 = weight == 0.0f ? 0.0f : dloss * weight * (expf(x0 - lse) - (c1 == target ? 1.0f : 0.0f));\n"
            .into(),
        coordinates: true,
        ..Loop::default()
    };
    Call::Kernel(one.kernel())
}

pub fn backward(cx: &Lowering) -> Option<Lowered> {
    let &[rows, cols] = cx.ins[0].shape() else { return None };
    let matrix = |arg, t: &crate::lower::Tensor| Matrix {
        arg,
        dtype: t.dtype,
        align: t.align,
        row: cols,
        col: 1,
        batch: 0,
    };
    let others = [1, 2, 3, 4].map(|i| Arg::In(i, 0));
    let call = gradient(
        matrix(Arg::In(0, 0), &cx.ins[0]),
        matrix(Arg::Out(0, 0), &cx.outs[0]),
        [rows, cols],
        others,
    );
    Some(Lowered { calls: vec![call], ..Lowered::default() })
}
