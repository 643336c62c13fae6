//! `softmax`: over the last axis.

use super::common::{infer_unary, narrow_rows, per_output, sample_unary};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::ReduceSum;
use crate::tensor::{Data, Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// `exp(x - max) / sum(exp(x - max))` over the last axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Softmax;

impl OpDef for Softmax {
    const NAME: &'static str = "softmax";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        infer_unary(inputs)
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Stream
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (_, cols) = inputs[0].shape.rows();
        let mut data = inputs[0].as_real().to_vec();
        for row in data.chunks_mut(cols.max(1)) {
            let max = row.iter().fold(R::neg_infinity(), |m, &x| m.max(x));
            row.iter_mut().for_each(|x| *x = (*x - max).exp());
            let sum: R = row.iter().copied().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        }
        vec![Tensor { shape: inputs[0].shape.clone(), data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        // dx = y (dy - sum(dy y))
        let dy = cx.only(0)?;
        let y = cx.outputs[0];
        let weighted = cx.g.mul(dy, y)?;
        let axes = cx.g.shape(y).len().checked_sub(1).into_iter().collect();
        let total = cx.g.one(ReduceSum { axes }, &[weighted])?;
        let centred = cx.g.sub(dy, total)?;
        Ok(vec![Some(cx.g.mul(centred, y)?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        sample_unary(g, Self, Fill::Normal)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 12)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_rows(cut, inputs, output)
    }
}

impl Graph {
    /// Softmax over the last axis.
    ///
    /// # Errors
    /// If `x` is not a float tensor.
    #[track_caller]
    pub fn softmax(&mut self, x: Value) -> Result<Value, GraphError> {
        self.one(Softmax, &[x])
    }
}
