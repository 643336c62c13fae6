//! `matmul`: matrix products, single or batched, with an optional bias; always accumulated in f32 or wider.

use super::common::{float, narrow_rows};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::ReduceSum;
use crate::tensor::{Data, Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// `op(a) op(b) + bias`, where `op` transposes the last two axes if asked.
///
/// Shapes: a `[.., m, k]`, b `[.., k, n]` (after transposition), equal leading axes; bias `[n]`, a third input
/// if `bias`. Output `[.., m, n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MatMul {
    /// Transpose the last two axes of `a`.
    pub ta: bool,
    /// Transpose the last two axes of `b`.
    pub tb: bool,
    /// A bias row is added.
    pub bias: bool,
}

/// Extents of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Number of independent products.
    pub batch: usize,
    /// Rows of the output.
    pub m: usize,
    /// Columns of the output.
    pub n: usize,
    /// Length of each dot product.
    pub k: usize,
}

impl MatMul {
    /// Extents for inputs of these shapes, or why they do not fit.
    ///
    /// # Errors
    /// If ranks, leading axes or inner extents differ.
    pub fn extents(&self, a: &[usize], b: &[usize]) -> Result<Extents, String> {
        let fail = || format!("cannot multiply {a:?}{} by {b:?}{}", mark(self.ta), mark(self.tb));
        if a.len() < 2 || a.len() != b.len() {
            return Err(fail());
        }
        let r = a.len() - 2;
        let (m, ka) = if self.ta { (a[r + 1], a[r]) } else { (a[r], a[r + 1]) };
        let (kb, n) = if self.tb { (b[r + 1], b[r]) } else { (b[r], b[r + 1]) };
        if ka != kb || a[..r] != b[..r] {
            return Err(fail());
        }
        Ok(Extents { batch: a[..r].iter().product(), m, n, k: ka })
    }
}

fn mark(transposed: bool) -> &'static str {
    if transposed { " (transposed)" } else { "" }
}

impl OpDef for MatMul {
    const NAME: &'static str = "matmul";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        super::common::arity(inputs, if self.bias { 3 } else { 2 })?;
        inputs.iter().try_for_each(|ty| float(ty, "each input"))?;
        let (a, b) = (inputs[0], inputs[1]);
        if a.dtype != b.dtype {
            return Err(format!("both sides must have one dtype, found {a} and {b}"));
        }
        let e = self.extents(&a.shape, &b.shape)?;
        if let Some(bias) = inputs.get(2).filter(|t| t.shape.0 != [e.n]) {
            return Err(format!("the bias must be [{}], found {bias}", e.n));
        }
        let mut shape = a.shape.clone();
        let r = shape.len() - 2;
        (shape.0[r], shape.0[r + 1]) = (e.m, e.n);
        Ok(vec![TensorType::f32(shape)])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn operands(&self) -> &'static [usize] {
        // The bias as well: libraries add one of the result's width.
        if self.bias { &[0, 1, 2] } else { &[0, 1] }
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let Ok(e) = self.extents(&inputs[0].shape, &inputs[1].shape) else { return vec![] };
        let (a, b) = (inputs[0].as_real(), inputs[1].as_real());
        let bias = inputs.get(2).map(|t| t.as_real());
        let mut data = Vec::with_capacity(e.batch * e.m * e.n);
        for i in 0..e.batch * e.m * e.n {
            let (batch, row, col) = (i / (e.m * e.n), i / e.n % e.m, i % e.n);
            let at = |k| a[batch * e.m * e.k + if self.ta { k * e.m + row } else { row * e.k + k }];
            let bt = |k| b[batch * e.k * e.n + if self.tb { col * e.k + k } else { k * e.n + col }];
            let dot: R = (0..e.k).map(|k| at(k) * bt(k)).sum();
            data.push(dot + bias.map_or(R::zero(), |v| v[col]));
        }
        let mut shape = inputs[0].shape.clone();
        let r = shape.len() - 2;
        (shape.0[r], shape.0[r + 1]) = (e.m, e.n);
        vec![Tensor { shape, data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let (a, b) = (cx.inputs[0], cx.inputs[1]);
        let product = |ta, tb| MatMul { ta, tb, bias: false };
        // d op(b) = op(a)^T dy and d op(a) = dy op(b)^T; a transposed input gets the transpose of that. What a goes on to
        // is added to that last, so it comes last: nothing stands between.
        let db = if self.tb {
            cx.g.one(product(true, self.ta), &[dy, a])?
        } else {
            cx.g.one(product(!self.ta, false), &[a, dy])?
        };
        let mut behind = vec![Some(db)];
        if self.bias {
            let shape = cx.g.shape(dy);
            let n = shape[shape.len() - 1];
            let sums = cx.g.one(ReduceSum { axes: (0..shape.len() - 1).collect() }, &[dy])?;
            behind.push(Some(cx.g.reshape(sums, [n])?));
        }
        let da = if self.ta {
            cx.g.one(product(self.tb, true), &[b, dy])?
        } else {
            cx.g.one(product(false, !self.tb), &[dy, b])?
        };
        Ok([vec![Some(da)], behind].concat())
    }

    fn sample(g: &mut Gen) -> Sample {
        let (ta, tb, bias) = (g.one_in(2), g.one_in(2), g.one_in(2));
        let lead = g.shape(0, 2);
        let (m, n, k) = (g.dim(1, 9), g.dim(1, 9), g.dim(1, 9));
        let with = |x, y, swap| [lead.clone(), if swap { vec![y, x] } else { vec![x, y] }].concat();
        let mut inputs = vec![
            (TensorType::f32(with(m, k, ta)), Fill::Normal),
            (TensorType::f32(with(k, n, tb)), Fill::Normal),
        ];
        if bias {
            inputs.push((TensorType::f32([n]), Fill::Normal));
        }
        Sample::new(Self { ta, tb, bias }, inputs)
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        self.extents(&inputs[0].shape, &inputs[1].shape).map_or(0, |e| 2 * (e.batch * e.m * e.n * e.k) as u64)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        // Rows of the product are rows of `a`; a transposed or batched `a` has none of its own.
        if self.ta || inputs[0].shape.len() > 2 { None } else { narrow_rows(cut, inputs, output) }
    }
}

impl Graph {
    /// `a b`, of matrices or equal batches of them.
    ///
    /// # Errors
    /// If the shapes do not fit.
    #[track_caller]
    pub fn matmul(&mut self, a: Value, b: Value) -> Result<Value, GraphError> {
        self.one(MatMul { ta: false, tb: false, bias: false }, &[a, b])
    }

    /// A linear layer on the last axis: `x w^T + bias`, with the weight `[out, in]` as PyTorch keeps it.
    ///
    /// # Errors
    /// If the extents do not fit.
    #[track_caller]
    pub fn linear(&mut self, x: Value, weight: Value, bias: Option<Value>) -> Result<Value, GraphError> {
        let mut shape = self.shape(x);
        let (rows, cols) = self.ty(x).shape.rows();
        let flat = self.reshape(x, [rows, cols])?;
        let op = MatMul { ta: false, tb: true, bias: bias.is_some() };
        let y = self.one(op, &[flat, weight].into_iter().chain(bias).collect::<Vec<_>>())?;
        if let Some(last) = shape.last_mut() {
            *last = self.shape(y)[1];
        }
        self.reshape(y, shape)
    }
}
