//! `linear_cross_entropy` and its gradient: the logits of some rows at a time, in the workspace, never all of them.

use super::{column_sum, cross_entropy};
use crate::lower::{Arg, GemmCall, Lowered, Lowering, Matrix, Tensor, align_at};
use ocelli_ir::DType;

/// Logits in the workspace at once.
const LOGITS: usize = 1 << 24;

/// Extents, and the rows taken at once.
fn extents(cx: &Lowering) -> Option<[usize; 4]> {
    let (&[n, c], &[v, _]) = (cx.ins[0].shape(), cx.ins[1].shape()) else { return None };
    let chunk = (LOGITS / v.max(1)).clamp(1, n.max(1)).next_multiple_of(8);
    (n * c * v > 0).then_some([n, c, v, chunk])
}

/// Rows from `start` on of a matrix of `cols` columns.
fn rows(arg: Arg, t: &Tensor, start: usize, cols: usize) -> Matrix {
    let bytes = start * cols * t.dtype.size();
    let align = align_at(t.align, bytes);
    Matrix { arg: arg.further(bytes), dtype: t.dtype, align, row: cols, col: 1, batch: 0 }
}

fn turned(m: Matrix) -> Matrix {
    Matrix { row: m.col, col: m.row, ..m }
}

/// `[m, n] = a b`.
fn product([m, n, k]: [usize; 3], a: Matrix, b: Matrix, d: Matrix, accumulate: bool) -> GemmCall {
    GemmCall { batch: 1, m, n, k, a, b, d, bias: None, accumulate }
}

pub fn forward(cx: &Lowering) -> Option<Lowered> {
    let [n, c, v, chunk] = extents(cx)?;
    let mut done = Lowered::default();
    let logits = done.reserve(chunk * v * size_of::<f32>());
    let parts: usize = (0..n).step_by(chunk).map(|s| cross_entropy::parts(chunk.min(n - s))).sum();
    let mut sums = done.reserve(parts * size_of::<f32>());
    let first = sums;
    for start in (0..n).step_by(chunk) {
        let count = chunk.min(n - start);
        let to = Matrix { arg: logits, dtype: DType::F32, align: 256, row: v, col: 1, batch: 0 };
        let (hidden, weight) =
            (rows(Arg::In(0, 0), &cx.ins[0], start, c), rows(Arg::In(1, 0), &cx.ins[1], 0, c));
        done.product(product([count, v, c], hidden, turned(weight), to, false), None);
        let at = |arg: Arg| arg.further(start * size_of::<f32>());
        let others = [at(Arg::In(2, 0)), at(Arg::In(3, 0)), at(Arg::Out(1, 0)), sums];
        done.calls.push(cross_entropy::losses((logits, DType::F32), [count, v], others));
        sums = sums.further(cross_entropy::parts(count) * size_of::<f32>());
    }
    done.calls.push(column_sum::call(first, parts, 1, Arg::Out(0, 0), DType::F32));
    Some(done)
}

pub fn backward(cx: &Lowering) -> Option<Lowered> {
    let [n, c, v, chunk] = extents(cx)?;
    let mut done = Lowered::default();
    let logits = done.reserve(chunk * v * size_of::<f32>());
    let dtype = cx.ins[0].dtype;
    // The products want operands of one type.
    let grads = if dtype == DType::F32 { logits } else { done.reserve(chunk * v * dtype.size()) };
    for start in (0..n).step_by(chunk) {
        let count = chunk.min(n - start);
        let wide = Matrix { arg: logits, dtype: DType::F32, align: 256, row: v, col: 1, batch: 0 };
        let narrow = Matrix { arg: grads, dtype, ..wide };
        let (hidden, weight) =
            (rows(Arg::In(0, 0), &cx.ins[0], start, c), rows(Arg::In(1, 0), &cx.ins[1], 0, c));
        done.product(product([count, v, c], hidden, turned(weight), wide, false), None);
        let at = |i: usize| Arg::In(i, start * size_of::<f32>());
        let call = cross_entropy::gradient(wide, narrow, [count, v], [at(2), at(3), at(4), Arg::In(5, 0)]);
        done.calls.push(call);
        let dhidden = rows(Arg::Out(0, 0), &cx.outs[0], start, c);
        done.product(product([count, c, v], narrow, weight, dhidden, false), None);
        let dweight = rows(Arg::Out(1, 0), &cx.outs[1], 0, c);
        done.product(product([v, c, count], turned(narrow), hidden, dweight, start > 0), None);
    }
    Some(done)
}
