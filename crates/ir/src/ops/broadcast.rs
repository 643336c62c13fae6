//! `broadcast`: repeats a tensor along new axes and axes of extent 1. A view with strides of 0.

use super::common::{arity, sum_to};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Shape, TensorType, View};

/// Repeats the input to `shape`, as NumPy's `broadcast_to`.
#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast {
    /// Shape of the output.
    pub shape: Shape,
}

impl OpDef for Broadcast {
    const NAME: &'static str = "broadcast";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        if inputs[0].shape.broadcast(&self.shape).as_ref() != Some(&self.shape) {
            return Err(format!("{} does not broadcast to {}", inputs[0], self.shape));
        }
        Ok(vec![TensorType::new(inputs[0].dtype, self.shape.clone())])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let view = View::contiguous(inputs[0].shape.clone()).broadcast(&self.shape);
        view.map(|v| inputs[0].gather(&v)).into_iter().collect()
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let shape = cx.shape(0);
        Ok(vec![Some(sum_to(cx.g, dy, &shape)?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let full = g.shape(0, 4);
        let from = g.broadcastable(&full);
        Sample::new(Self { shape: full.into() }, vec![(TensorType::f32(from), Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }

    fn alias(&self, input: &View) -> Option<Vec<View>> {
        Some(vec![input.broadcast(&self.shape)?])
    }
}
