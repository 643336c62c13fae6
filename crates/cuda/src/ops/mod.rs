//! What each op becomes on the device: one file or folder a kind of op, one line each here.

mod adam;
mod arithmetic;
mod attention;
mod casts;
mod column_sum;
mod cross_entropy;
mod dropout;
mod dropout_weights;
mod fused;
mod gather_rows;
mod gemm;
mod linear_cross_entropy;
mod matmul;
mod moves;
mod reduce_sum;
mod rope;
mod row_norm;
mod scatter_rows;
mod softmax;
mod sum_squares;

pub use adam::many as many_adam;
pub use casts::many as many_casts;
pub use column_sum::late as late_sums;

use crate::lower::{Lowered, Lowering};
use ocelli_ir::{Op, View};

/// What a launch becomes; none if there is no kernel for it at these types and views.
pub fn lower(op: &Op, cx: &Lowering) -> Option<Lowered> {
    match op {
        Op::MatMul(op) => matmul::lower(op, cx),
        Op::Attention(op) => attention::forward(op, cx),
        Op::AttentionGrad(op) => attention::backward(&op.forward, cx),
        Op::DropoutOp(op) => dropout::lower(op, cx),
        Op::DropoutWeights(op) => dropout_weights::lower(op, cx),
        Op::GatherRows(_) => gather_rows::lower(cx),
        Op::ScatterRows(op) => scatter_rows::lower(op, cx),
        Op::LayerNorm(op) => row_norm::layer_norm(op, cx),
        Op::LayerNormGrad(_) => row_norm::layer_norm_grad(cx),
        Op::RmsNorm(op) => row_norm::rms_norm(op, cx),
        Op::RmsNormGrad(_) => row_norm::rms_norm_grad(cx),
        Op::Softmax(_) => softmax::lower(cx),
        Op::CrossEntropy(_) => cross_entropy::forward(cx),
        Op::CrossEntropyGrad(_) => cross_entropy::backward(cx),
        Op::LinearCrossEntropy(_) => linear_cross_entropy::forward(cx),
        Op::LinearCrossEntropyGrad(_) => linear_cross_entropy::backward(cx),
        Op::ReduceSum(op) => reduce_sum::lower(op, cx),
        Op::SumSquares(_) => sum_squares::lower(cx),
        Op::Adam(op) => adam::one(op, cx),
        Op::Fused(op) => fused::lower(op, cx),
        Op::Rope(op) => rope::lower(op, cx),
        op => arithmetic::lower(op, cx).or_else(|| moves::lower(op, cx)),
    }
}

/// True if the kernel of `op` reads this view, which has gaps, as its input number `input`.
pub fn reads(op: &Op, input: usize, view: &View) -> bool {
    match op {
        Op::MatMul(_) => input < 2 && matmul::takes(view),
        Op::Attention(_) => input < 3 && rows(view),
        Op::AttentionGrad(_) => (input < 4 || input == 5) && rows(view),
        Op::ReduceSum(_) => true,
        op => (arithmetic::is(op) || moves::is(op)) && moves::reads(op),
    }
}

/// True if the kernel of `op` writes this view, which has gaps, as its output number `output`.
pub fn writes(op: &Op, output: usize, view: &View) -> bool {
    match op {
        Op::MatMul(_) => matmul::rows(view),
        Op::Attention(_) => output == 0 && rows(view),
        Op::AttentionGrad(_) => rows(view),
        op => (arithmetic::is(op) || moves::is(op)) && moves::writes(op),
    }
}

/// True if neighbours along the last axis lie side by side.
fn rows(view: &View) -> bool {
    view.shape.last().zip(view.strides.last()).is_some_and(|(&n, &s)| n == 1 || s == 1)
}
