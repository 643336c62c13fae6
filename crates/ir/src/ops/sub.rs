//! `sub`: The difference `a - b`.

use super::common::{binary_gradients, eval_binary, infer_binary, narrow_elements, per_output, sample_binary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// The difference `a - b`. Shapes broadcast as in NumPy.
#[derive(Clone, Debug, PartialEq)]
pub struct Sub;

impl OpDef for Sub {
    const NAME: &'static str = "sub";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_binary(inputs)
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Stream
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        eval_binary(inputs, |a, b| a - b)
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let minus = cx.g.constant(-1.0, cx.g.ty(dy).dtype);
        let db = cx.g.mul(dy, minus)?;
        binary_gradients(cx, dy, db)
    }

    fn sample(g: &mut Gen) -> Sample {
        sample_binary(g, Self, Fill::Normal)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 1)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// The difference `a - b`.
    ///
    /// # Errors
    /// If the shapes do not broadcast or the dtypes differ.
    #[track_caller]
    pub fn sub(&mut self, a: Value, b: Value) -> Result<Value, GraphError> {
        self.one(Sub, &[a, b])
    }
}
