//! `reduce_sum`: sums over axes, which keep an extent of 1.

use super::common::{arity, float};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::ops::Broadcast;
use crate::tensor::{Data, Real, Tensor};
use crate::{Graph, GraphError, Shape, TensorType, Value, View};

/// Sums over `axes`; the output has extent 1 there.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceSum {
    /// Axes summed over.
    pub axes: Vec<usize>,
}

impl ReduceSum {
    /// Shape of the output for an input of `shape`.
    pub fn kept(&self, shape: &Shape) -> Shape {
        (0..shape.len()).map(|i| if self.axes.contains(&i) { 1 } else { shape[i] }).collect::<Vec<_>>().into()
    }
}

impl OpDef for ReduceSum {
    const NAME: &'static str = "reduce_sum";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        float(inputs[0], "the input")?;
        if let Some(axis) = self.axes.iter().find(|&&a| a >= inputs[0].shape.len()) {
            return Err(format!("{} has no axis {axis}", inputs[0]));
        }
        Ok(vec![TensorType::f32(self.kept(&inputs[0].shape))])
    }

    fn reads_half(&self) -> bool {
        true
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let shape = self.kept(&inputs[0].shape);
        let mut data = vec![R::zero(); shape.numel()];
        // Walk the output once per input element: a view with stride 0 along the summed axes.
        if let Some(target) = View::contiguous(shape.clone()).broadcast(&inputs[0].shape) {
            let mut from = inputs[0].as_real().iter();
            target.for_each(|i| data[i] += from.next().copied().unwrap_or_default());
        }
        vec![Tensor { shape, data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let shape = cx.shape(0).into();
        Ok(vec![Some(cx.g.one(Broadcast { shape }, &[dy])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(0, 4);
        let axes = (0..shape.len()).filter(|_| g.one_in(2)).collect();
        Sample::new(Self { axes }, vec![(TensorType::f32(shape), Fill::Normal)])
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        inputs[0].shape.numel() as u64
    }
}

impl Graph {
    /// The sum of all elements, a scalar.
    ///
    /// # Errors
    /// If `x` is not a float tensor.
    #[track_caller]
    pub fn sum_all(&mut self, x: Value) -> Result<Value, GraphError> {
        let axes = (0..self.ty(x).shape.len()).collect();
        let summed = self.one(ReduceSum { axes }, &[x])?;
        self.reshape(summed, [])
    }
}
