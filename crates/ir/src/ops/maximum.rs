//! `maximum`: The larger of `a` and `b`.

use super::common::{eval_binary, infer_binary, narrow_elements, per_output, sample_binary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// The larger of `a` and `b`. Shapes broadcast as in NumPy.
#[derive(Clone, Debug, PartialEq)]
pub struct Maximum;

impl OpDef for Maximum {
    const NAME: &'static str = "maximum";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_binary(inputs)
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        eval_binary(inputs, |a: R, b| if b > a { b } else { a })
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("it bounds scalars such as a schedule; no loss depends on it")
    }

    fn sample(g: &mut Gen) -> Sample {
        Sample { differentiable: vec![], ..sample_binary(g, Self, Fill::Normal) }
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 1)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// The larger of `a` and `b`.
    ///
    /// # Errors
    /// If the shapes do not broadcast or the dtypes differ.
    #[track_caller]
    pub fn maximum(&mut self, a: Value, b: Value) -> Result<Value, GraphError> {
        self.one(Maximum, &[a, b])
    }
}
