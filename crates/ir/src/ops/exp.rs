//! `exp`: The exponential of each element.

use super::common::{eval_unary, infer_unary, narrow_elements, per_output, sample_unary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// The exponential of each element.
#[derive(Clone, Debug, PartialEq)]
pub struct Exp;

impl OpDef for Exp {
    const NAME: &'static str = "exp";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_unary(inputs)
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        eval_unary(inputs, |x: R| x.exp())
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        Ok(vec![Some(cx.g.mul(dy, cx.outputs[0])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        sample_unary(g, Self, Fill::Normal)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 8)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// The exponential of each element.
    ///
    /// # Errors
    /// If `x` is not a float tensor.
    #[track_caller]
    pub fn exp(&mut self, x: Value) -> Result<Value, GraphError> {
        self.one(Exp, &[x])
    }
}
