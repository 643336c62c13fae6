//! The registry of kernels: one file an op, one line each here.

mod adam;
mod add;
mod attention;
mod attention_grad;
mod broadcast;
mod cast;
mod concat;
mod constant;
mod contiguous;
mod copy;
mod cos;
mod cross_entropy;
mod cross_entropy_grad;
mod div;
mod dropout;
mod dropout_weights;
mod elementwise;
mod exp;
mod fused;
mod gather_rows;
mod gelu;
mod gelu_grad;
mod gelu_tanh;
mod gelu_tanh_grad;
mod heads;
mod increment;
mod layer_norm;
mod layer_norm_grad;
mod linear_cross_entropy;
mod linear_cross_entropy_grad;
mod loss_scale;
mod matmul;
mod maximum;
mod minimum;
mod mul;
mod normalize_pixels;
mod pad;
mod patchify;
mod permute;
mod positions;
mod reduce_sum;
pub mod reference;
mod reshape;
mod rms_norm;
mod rms_norm_grad;
mod rope;
mod scatter_rows;
mod slice;
mod softmax;
mod split;
mod sqrt;
mod state_write;
mod step_gate;
mod sub;
mod sum_squares;
mod swiglu;
mod swiglu_grad;
mod unpatchify;
mod update_slice;

pub use copy::par_copy;

use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::layout::MAX_RANK;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::{DType, Op, TensorType, View};
use std::fmt::Debug;

/// Memory that a kernel uses while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bytes for the launch as a whole: partial sums, one for each piece of the work.
    pub workspace: usize,
    /// Bytes for each thread.
    pub scratch: usize,
}

impl Needs {
    /// `n` elements of `T` for the launch as a whole.
    pub fn workspace<T>(n: usize) -> Self {
        Self { workspace: n.saturating_mul(size_of::<T>()), scratch: 0 }
    }

    /// `n` floats for each thread.
    pub fn scratch(n: usize) -> Self {
        Self { workspace: 0, scratch: n.saturating_mul(size_of::<f32>()) }
    }
}

/// How this executor runs an op. Implemented by the ops' own structs.
///
/// The output of an in-place pair holds the input's contents when `run` is called, and the input is absent.
pub trait Kernel: Debug + Send + Sync {
    /// True if it takes inputs of these types, whose ranks are at most [`MAX_RANK`].
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs.iter().all(|ty| ty.dtype == DType::F32)
    }

    /// True if it reads this view with gaps as its input `input`.
    fn reads(&self, _input: usize, _view: &View) -> bool {
        false
    }

    /// True if it writes this view with gaps as its output `output`.
    fn writes(&self, _output: usize, _view: &View) -> bool {
        false
    }

    /// Memory it uses on inputs of these types.
    fn needs(&self, _inputs: &[TensorType]) -> Needs {
        Needs::default()
    }

    /// Computes the outputs.
    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>);
}

/// The kernel of an op, if there is one.
pub fn kernel(op: &Op) -> Option<&dyn Kernel> {
    Some(match op {
        Op::Constant(op) => op,
        Op::StateWrite(op) => op,
        Op::Add(op) => op,
        Op::Sub(op) => op,
        Op::Mul(op) => op,
        Op::Div(op) => op,
        Op::Minimum(op) => op,
        Op::Maximum(op) => op,
        Op::Sqrt(op) => op,
        Op::Exp(op) => op,
        Op::Cos(op) => op,
        Op::Cast(op) => op,
        Op::Increment(op) => op,
        Op::Reshape(op) => op,
        Op::Permute(op) => op,
        Op::Broadcast(op) => op,
        Op::Slice(op) => op,
        Op::Pad(op) => op,
        Op::Split(op) => op,
        Op::Concat(op) => op,
        Op::Contiguous(op) => op,
        Op::ReduceSum(op) => op,
        Op::SumSquares(op) => op,
        Op::MatMul(op) => op,
        Op::Softmax(op) => op,
        Op::LayerNorm(op) => op,
        Op::LayerNormGrad(op) => op,
        Op::RmsNorm(op) => op,
        Op::RmsNormGrad(op) => op,
        Op::Gelu(op) => op,
        Op::GeluGrad(op) => op,
        Op::GeluTanh(op) => op,
        Op::GeluTanhGrad(op) => op,
        Op::Swiglu(op) => op,
        Op::SwigluGrad(op) => op,
        Op::Positions(op) => op,
        Op::Rope(op) => op,
        Op::DropoutOp(op) => op,
        Op::DropoutWeights(op) => op,
        Op::Attention(op) => op,
        Op::AttentionGrad(op) => op,
        Op::GatherRows(op) => op,
        Op::ScatterRows(op) => op,
        Op::NormalizePixels(op) => op,
        Op::Patchify(op) => op,
        Op::Unpatchify(op) => op,
        Op::CrossEntropy(op) => op,
        Op::CrossEntropyGrad(op) => op,
        Op::LinearCrossEntropy(op) => op,
        Op::LinearCrossEntropyGrad(op) => op,
        Op::UpdateSlice(op) => op,
        Op::StepGate(op) => op,
        Op::LossScale(op) => op,
        Op::Adam(op) => op,
        Op::Fused(op) => op,
        _ => return None,
    })
}

/// The kernel of an op at inputs of these types, if there is one.
pub fn kernel_for<'a>(op: &'a Op, inputs: &[TensorType]) -> Option<&'a dyn Kernel> {
    let low = inputs.iter().all(|ty| ty.shape.len() <= MAX_RANK);
    kernel(op).filter(|k| low && k.supports(inputs))
}
