//! `gelu`: The exact GELU, `x / 2 (1 + erf(x / sqrt 2))` (Hendrycks and Gimpel 2016), not its tanh approximation.

use super::common::{eval_unary, infer_unary, narrow_elements, per_output, sample_unary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// The exact GELU, `x / 2 (1 + erf(x / sqrt 2))` (Hendrycks and Gimpel 2016), not its tanh approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct Gelu;

impl OpDef for Gelu {
    const NAME: &'static str = "gelu";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_unary(inputs)
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        eval_unary(inputs, |x: R| R::of(0.5 * x.f64() * (1.0 + libm::erf(x.f64() * std::f64::consts::FRAC_1_SQRT_2))))
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        Ok(vec![Some(cx.g.one(crate::ops::GeluGrad, &[cx.inputs[0], dy])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        sample_unary(g, Self, Fill::Normal)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 12)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// The exact GELU, `x / 2 (1 + erf(x / sqrt 2))` (Hendrycks and Gimpel 2016), not its tanh approximation.
    ///
    /// # Errors
    /// If `x` is not a float tensor.
    #[track_caller]
    pub fn gelu(&mut self, x: Value) -> Result<Value, GraphError> {
        self.one(Gelu, &[x])
    }
}
