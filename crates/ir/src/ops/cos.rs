//! `cos`: The cosine of each element.

use super::common::{eval_unary, infer_unary, narrow_elements, per_output, sample_unary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// The cosine of each element.
#[derive(Clone, Debug, PartialEq)]
pub struct Cos;

impl OpDef for Cos {
    const NAME: &'static str = "cos";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_unary(inputs)
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        eval_unary(inputs, |x: R| x.cos())
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("it serves learning-rate schedules; no loss depends on it")
    }

    fn sample(g: &mut Gen) -> Sample {
        Sample { differentiable: vec![], ..sample_unary(g, Self, Fill::Normal) }
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 8)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// The cosine of each element.
    ///
    /// # Errors
    /// If `x` is not a float tensor.
    #[track_caller]
    pub fn cos(&mut self, x: Value) -> Result<Value, GraphError> {
        self.one(Cos, &[x])
    }
}
