//! `gelu_tanh`: the tanh form of the GELU (Hendrycks and Gimpel 2016), which published vision towers were trained
//! with. It is another function than the exact one, by up to 5e-4.

use super::common::{eval_unary, infer_unary, narrow_elements, per_output, sample_unary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, element by element.
#[derive(Clone, Debug, PartialEq)]
pub struct GeluTanh;

/// Factor of the cube.
pub(super) const CUBE: f64 = 0.044_715;

impl OpDef for GeluTanh {
    const NAME: &'static str = "gelu_tanh";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_unary(inputs)
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let root = R::of((2.0 / std::f64::consts::PI).sqrt());
        eval_unary(inputs, |x: R| {
            let inner = root * (x + R::of(CUBE) * x * x * x);
            R::of(0.5) * x * (R::one() + inner.tanh())
        })
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        Ok(vec![Some(cx.g.one(crate::ops::GeluTanhGrad, &[cx.inputs[0], dy])?)])
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
    /// The tanh form of the GELU.
    ///
    /// # Errors
    /// If `x` is not a float tensor.
    #[track_caller]
    pub fn gelu_tanh(&mut self, x: Value) -> Result<Value, GraphError> {
        self.one(GeluTanh, &[x])
    }
}
