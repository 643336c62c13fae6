//! `reshape`: the same elements under another shape. A view wherever no copy is needed.

use super::common::arity;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, Shape, TensorType, Value, View};

/// Reads the elements in row-major order as `shape`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    /// Shape of the output.
    pub shape: Shape,
}

impl OpDef for Reshape {
    const NAME: &'static str = "reshape";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        if inputs[0].shape.numel() != self.shape.numel() {
            return Err(format!("{} has {} elements, {} has {}", inputs[0], inputs[0].shape.numel(), self.shape, self.shape.numel()));
        }
        Ok(vec![TensorType::new(inputs[0].dtype, self.shape.clone())])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        vec![inputs[0].reshaped(self.shape.clone())]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let shape = cx.shape(0);
        Ok(vec![Some(cx.g.reshape(dy, shape)?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let from = g.shape(0, 4);
        let n: usize = from.iter().product();
        let shape = if g.one_in(2) { vec![n].into() } else { vec![1, n, 1].into() };
        Sample::new(Self { shape }, vec![(TensorType::f32(from), Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        let _ = (inputs, output);
        Some(vec![Some(*cut)])
    }

    fn alias(&self, input: &View) -> Option<Vec<View>> {
        Some(vec![input.reshape(&self.shape)?])
    }
}

impl Graph {
    /// `x` under another shape of as many elements.
    ///
    /// # Errors
    /// If the numbers of elements differ.
    #[track_caller]
    pub fn reshape(&mut self, x: Value, shape: impl Into<Shape>) -> Result<Value, GraphError> {
        self.one(Reshape { shape: shape.into() }, &[x])
    }
}
