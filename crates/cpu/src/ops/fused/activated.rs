//! `gelu(a b + bias)`, and `a b + bias` too if a backward part reads it: each tile of the product goes through the function
//! while it is in the cache.

use super::Body;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Dst, Inputs, Outputs};
use crate::ops::matmul::Product;
use crate::ops::{Kernel, Needs};
use crate::simd::math::{gelu, gelu_tanh};
use ocelli_ir::ops::MatMul;
use ocelli_ir::{Op, TensorType, View};

/// The body, with the numbers of its inputs.
pub(super) struct Activated<'a> {
    product: &'a MatMul,
    factors: [usize; 2],
    bias: Option<usize>,
    /// The approximation by tanh, not the exact function.
    tanh: bool,
}

impl<'a> Activated<'a> {
    pub(super) fn of(body: Body<'a>) -> Option<Self> {
        let [product, function] = body.ops()?;
        let Op::MatMul(op) = &product.op else { return None };
        let tanh = match &function.op {
            Op::Gelu(_) => false,
            Op::GeluTanh(_) => true,
            _ => return None,
        };
        let (h, y) = (product.outputs[0], function.outputs[0]);
        // Only reshapes can lie between.
        let seen = body.graph.root(function.inputs[0]) == h;
        let inputs: Vec<usize> = product.inputs.iter().map(|&v| body.input(v)).collect::<Option<_>>()?;
        let (&[a, b], bias) = inputs.split_first_chunk::<2>()?;
        let fits = seen && (body.gives(&[h, y]) || body.gives(&[y]));
        fits.then_some(Self { product: op, factors: [a, b], bias: bias.first().copied(), tanh })
    }

    pub(super) fn reads(&self, input: usize, view: &View) -> bool {
        self.factors.contains(&input) && self.bias != Some(input) && self.product.reads(0, view)
    }

    pub(super) fn needs(&self, inputs: &[TensorType]) -> Needs {
        self.product.needs(&self.factors.map(|i| inputs[i].clone()))
    }

    pub(super) fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        if self.tanh {
            self.run_with(cx, work, ins, outs, gelu_tanh);
        } else {
            self.run_with(cx, work, ins, outs, gelu);
        }
    }

    #[inline(always)]
    fn run_with(
        &self,
        cx: &Cx<'_>,
        work: &mut Buffer,
        ins: Inputs<'_>,
        outs: Outputs<'_>,
        f: impl Fn(f32) -> f32 + Copy + Sync + Send,
    ) {
        let factors = self.factors.map(|i| ins.get::<f32>(i));
        let bias = self.bias.map(|i| ins.dense::<f32>(i));
        if outs.len() == 1 {
            let out = outs.take::<f32, 1>();
            self.product.product(cx, work, factors, bias, out, |cx, [y]| in_place(cx, y, f));
        } else {
            let outs = outs.take::<f32, 2>();
            self.product.product(cx, work, factors, bias, outs, |cx, [h, y]| apply(cx, h, y, f));
        }
    }
}

/// `y = f(h)` in a tile.
fn apply(cx: &Cx<'_>, mut h: Dst<'_, f32>, mut y: Dst<'_, f32>, f: impl Fn(f32) -> f32 + Copy) {
    cx.simd(
        #[inline(always)]
        || {
            for r in 0..h.layout().shape()[0] {
                for (y, &h) in y.line(&[r]).iter_mut().zip(&*h.line(&[r])) {
                    *y = f(h);
                }
            }
        },
    );
}

/// `y = f(y)` in a tile.
fn in_place(cx: &Cx<'_>, mut y: Dst<'_, f32>, f: impl Fn(f32) -> f32 + Copy) {
    cx.simd(
        #[inline(always)]
        || {
            for r in 0..y.layout().shape()[0] {
                y.line(&[r]).iter_mut().for_each(
                    #[inline(always)]
                    |y| *y = f(*y),
                );
            }
        },
    );
}
