//! The registry of ops: one file each, one line each here.

use crate::op::{Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, TensorType, View};
use std::fmt;

mod common;

macro_rules! registry {
    ($($file:ident :: $name:ident),* $(,)?) => {
        $(mod $file; pub use $file::*;)*

        /// Any op. Made by the registry; each variant holds the struct of the op's own file.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Op { $($name($file::$name)),* }

        $(impl From<$file::$name> for Op { fn from(op: $file::$name) -> Self { Op::$name(op) } })*

        impl Op {
            /// Name in messages, traces and plans.
            pub fn name(&self) -> &'static str {
                match self { $(Op::$name(_) => <$file::$name as OpDef>::NAME),* }
            }
            /// Shape and dtype rule, see [`OpDef::infer`].
            ///
            /// # Errors
            /// If the inputs do not fit.
            pub fn infer(&self, inputs: &[&TensorType]) -> Inferred {
                match self { $(Op::$name(op) => op.infer(inputs)),* }
            }
            /// Reference evaluation, see [`OpDef::eval`].
            pub fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
                match self { $(Op::$name(op) => op.eval(inputs)),* }
            }
            /// Vector-Jacobian product, see [`OpDef::vjp`].
            ///
            /// # Errors
            /// If the op has no gradient.
            pub fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
                match self { $(Op::$name(op) => op.vjp(cx)),* }
            }
            /// Floating-point operations.
            pub fn flops(&self, inputs: &[&TensorType], outputs: &[&TensorType]) -> u64 {
                match self { $(Op::$name(op) => op.flops(inputs, outputs)),* }
            }
            /// Bytes read and written.
            pub fn bytes(&self, inputs: &[&TensorType], outputs: &[&TensorType]) -> u64 {
                match self { $(Op::$name(op) => op.bytes(inputs, outputs)),* }
            }
            /// Views of the first input that the outputs are, see [`OpDef::alias`].
            pub fn alias(&self, input: &View) -> Option<Vec<View>> {
                match self { $(Op::$name(op) => op.alias(input)),* }
            }
            /// Parts of the inputs that a part of the first output needs, see [`OpDef::narrow`].
            pub fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
                match self { $(Op::$name(op) => op.narrow(cut, inputs, output)),* }
            }
            /// How wide a float output is stored in mixed precision, see [`OpDef::storage`].
            pub fn storage(&self, output: usize) -> Storage {
                match self { $(Op::$name(op) => op.storage(output)),* }
            }
            /// Inputs that are multiplied with each other, see [`OpDef::operands`].
            pub fn operands(&self) -> &'static [usize] {
                match self { $(Op::$name(op) => op.operands()),* }
            }
            /// True if float inputs may be stored in 16 bits, see [`OpDef::reads_half`].
            pub fn reads_half(&self) -> bool {
                match self { $(Op::$name(op) => op.reads_half()),* }
            }
            /// (output, input) pairs that may share memory.
            pub fn in_place(&self) -> &'static [(usize, usize)] {
                match self { $(Op::$name(op) => op.in_place()),* }
            }
        }

        /// Name and sample generator of every registered op.
        pub fn registry() -> Vec<(&'static str, fn(&mut Gen) -> Sample)> {
            vec![$((<$file::$name as OpDef>::NAME, <$file::$name as OpDef>::sample)),*]
        }
    };
}

registry! {
    // What a program touches.
    input::Input, constant::Constant, state_read::StateRead, state_write::StateWrite,
    // Element by element, with broadcasting.
    add::Add, sub::Sub, mul::Mul, div::Div, minimum::Minimum, maximum::Maximum,
    sqrt::Sqrt, exp::Exp, cos::Cos, cast::Cast, increment::Increment,
    // Shapes.
    reshape::Reshape, permute::Permute, broadcast::Broadcast, slice::Slice, pad::Pad, split::Split, concat::Concat,
    contiguous::Contiguous,
    // Sums and products.
    reduce_sum::ReduceSum, sum_squares::SumSquares, matmul::MatMul, softmax::Softmax,
    // Layers.
    layer_norm::LayerNorm, layer_norm_grad::LayerNormGrad, rms_norm::RmsNorm, rms_norm_grad::RmsNormGrad,
    gelu::Gelu, gelu_grad::GeluGrad, gelu_tanh::GeluTanh, gelu_tanh_grad::GeluTanhGrad,
    swiglu::Swiglu, swiglu_grad::SwigluGrad, positions::Positions, rope::Rope,
    dropout::DropoutOp, dropout_weights::DropoutWeights, attention::Attention, attention_grad::AttentionGrad,
    gather_rows::GatherRows, scatter_rows::ScatterRows,
    normalize_pixels::NormalizePixels, patchify::Patchify, unpatchify::Unpatchify,
    cross_entropy::CrossEntropy, cross_entropy_grad::CrossEntropyGrad,
    linear_cross_entropy::LinearCrossEntropy, linear_cross_entropy_grad::LinearCrossEntropyGrad,
    // State.
    update_slice::UpdateSlice, step_gate::StepGate, loss_scale::LossScale, adam::Adam,
    // Several of them as one.
    fused::Fused,
}

impl Op {
    /// Checks that outputs are of these types, which follow from the inputs but for how wide floats are stored: an op
    /// that makes numbers of its own may store them in 16 bits where its [`storage`](OpDef::storage) is not wide.
    ///
    /// # Errors
    /// If the inputs do not fit, or the outputs differ from the rule.
    pub fn check(&self, inputs: &[&TensorType], outputs: &[&TensorType]) -> Result<(), String> {
        let want = self.infer(inputs)?;
        let half = |i| matches!(self.storage(i), Storage::Half | Storage::Stream);
        let fits = |(i, (want, have)): (usize, (&TensorType, &&TensorType))| {
            want == *have
                || (half(i) && want.shape == have.shape && want.dtype.is_float() && have.dtype.is_float())
        };
        if want.len() == outputs.len() && want.iter().zip(outputs).enumerate().all(fits) {
            return Ok(());
        }
        Err(format!("has outputs {outputs:?}, its rule says {want:?}"))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Input(op) => write!(f, "input '{}'", op.name),
            Op::StateRead(op) => write!(f, "state_read #{}", op.slot.0),
            Op::StateWrite(op) => write!(f, "state_write #{}", op.slot.0),
            Op::Constant(op) => write!(f, "constant {}", op.value),
            Op::Fused(op) => write!(f, "fused {}", op.names()),
            _ => f.write_str(self.name()),
        }
    }
}
