//! `sqrt`: The square root of each element.

use super::common::{eval_unary, infer_unary, narrow_elements, per_output, sample_unary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// The square root of each element.
#[derive(Clone, Debug, PartialEq)]
pub struct Sqrt;

impl OpDef for Sqrt {
    const NAME: &'static str = "sqrt";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_unary(inputs)
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        eval_unary(inputs, |x: R| x.sqrt())
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        // d sqrt(x) = dx / (2 sqrt(x))
        let dy = cx.only(0)?;
        let half = cx.g.constant(0.5, cx.g.ty(dy).dtype);
        let halved = cx.g.mul(dy, half)?;
        Ok(vec![Some(cx.g.div(halved, cx.outputs[0])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        sample_unary(g, Self, Fill::Range(0.5, 2.0))
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 1)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// The square root of each element.
    ///
    /// # Errors
    /// If `x` is not a float tensor.
    #[track_caller]
    pub fn sqrt(&mut self, x: Value) -> Result<Value, GraphError> {
        self.one(Sqrt, &[x])
    }
}
