//! `matmul`: products of the library, which also adds the bias.

use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Call, GemmCall, Lowered, Lowering, Matrix, Tensor};
use ocelli_ir::ops::MatMul;
use ocelli_ir::{DType, View};

/// Distance of rows and of columns of the last two axes, and of the products, if the library can read them.
fn strides(view: &View) -> Option<[usize; 3]> {
    let n = view.shape.len();
    let [rows, cols] = [view.shape[n - 2], view.shape[n - 1]];
    let lead = View {
        offset: 0,
        shape: view.shape[..n - 2].to_vec().into(),
        strides: view.strides[..n - 2].to_vec(),
    };
    let count = lead.shape.numel();
    let batch = if count > 1 { lead.reshape(&[count].into())?.strides[0] } else { 0 };
    let (row, col) = (view.strides[n - 2], view.strides[n - 1]);
    // An axis of one element may have any stride: it gets one that fits.
    let [row, col] = match (rows, cols) {
        (1, 1) => [1, 1],
        (1, _) if col == 1 => [cols, 1],
        (1, _) => [1, col],
        (_, 1) => [row, 1],
        _ => [row, col],
    };
    let fits = (col == 1 && row >= cols) || (row == 1 && col >= rows);
    (fits && count != 0).then_some([row, col, batch])
}

/// True if the library reads this view.
pub fn takes(view: &View) -> bool {
    view.shape.len() >= 2 && strides(view).is_some()
}

/// True if the library writes this view.
pub fn rows(view: &View) -> bool {
    view.shape.len() >= 2 && strides(view).is_some_and(|s| s[1] == 1)
}

/// A matrix as products see it; `transposed`: its transpose is meant.
pub fn matrix(arg: Arg, t: &Tensor, transposed: bool) -> Option<Matrix> {
    let [row, col, batch] = strides(&t.view)?;
    let (row, col) = if transposed { (col, row) } else { (row, col) };
    Some(Matrix { arg, dtype: t.dtype, align: t.align, row, col, batch })
}

pub fn lower(op: &MatMul, cx: &Lowering) -> Option<Lowered> {
    let (a, b, d) = (cx.ins.first()?, cx.ins.get(1)?, cx.outs.first()?);
    let e = op.extents(a.shape(), b.shape()).ok()?;
    let mut done = Lowered::default();
    if e.batch * e.m * e.n == 0 {
        return Some(done);
    }
    let (a, b) = (matrix(Arg::In(0, 0), a, op.ta)?, matrix(Arg::In(1, 0), b, op.tb)?);
    let d = matrix(Arg::Out(0, 0), d, false).filter(|d| d.col == 1)?;
    let bias = cx.ins.get(2).map(|t| (Arg::In(2, 0), t.dtype));
    done.product(
        GemmCall { batch: e.batch, m: e.m, n: e.n, k: e.k, a, b, d, bias: None, accumulate: false },
        bias,
    );
    Some(done)
}

impl Lowered {
    /// A product, with what the library does not do by itself done before or behind it: it makes 16 bits of 16 bits
    /// only, and adds a bias of the result's type only.
    pub fn product(&mut self, call: GemmCall, bias: Option<(Arg, DType)>) {
        let to = call.d;
        let narrows = call.a.dtype == DType::F32 && to.dtype != DType::F32;
        let d = match narrows {
            true => {
                let arg = self.reserve(call.batch * call.m * call.n * size_of::<f32>());
                Matrix { arg, dtype: DType::F32, align: 256, row: call.n, col: 1, batch: call.m * call.n }
            }
            false => to,
        };
        let vector = |arg, dtype| Access { arg, dtype, align: dtype.size(), place: Place::Strides(vec![1]) };
        let bias = bias.map(|(arg, dtype)| {
            if dtype == d.dtype {
                return arg;
            }
            let cast = self.reserve(call.n * d.dtype.size());
            let copy = Loop::copy(vec![call.n], vector(arg, dtype), vector(cast, d.dtype));
            self.calls.push(Call::Kernel(copy.kernel()));
            cast
        });
        self.calls.push(Call::Gemm(GemmCall { d, bias, ..call }));
        if narrows {
            let place = |m: Matrix| Access {
                arg: m.arg,
                dtype: m.dtype,
                align: m.align,
                place: Place::Strides(vec![m.batch, m.row, 1]),
            };
            let copy = Loop::copy(vec![call.batch, call.m, call.n], place(d), place(to));
            self.calls.push(Call::Kernel(copy.kernel()));
        }
    }
}
