//! `slice`: a range of one axis. A view.

use super::common::arity;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::Pad;
use crate::tensor::{Real, Tensor};
use crate::{Graph, GraphError, TensorType, Value, View};

/// Elements `start..start + len` of `axis`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The axis cut.
    pub axis: usize,
    /// First index kept.
    pub start: usize,
    /// How many indices are kept.
    pub len: usize,
}

impl Slice {
    pub(super) fn view(&self, v: &View) -> View {
        let mut out = v.clone();
        out.offset += self.start * v.strides[self.axis];
        out.shape.0[self.axis] = self.len;
        out
    }
}

impl OpDef for Slice {
    const NAME: &'static str = "slice";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        let have = inputs[0].shape.get(self.axis).copied().unwrap_or(0);
        if self.start + self.len > have {
            return Err(format!(
                "rows {}..{} of axis {} do not exist in {}",
                self.start,
                self.start + self.len,
                self.axis,
                inputs[0]
            ));
        }
        let mut shape = inputs[0].shape.clone();
        shape.0[self.axis] = self.len;
        Ok(vec![TensorType::new(inputs[0].dtype, shape)])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        vec![inputs[0].gather(&self.view(&View::contiguous(inputs[0].shape.clone())))]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let total = cx.shape(0)[self.axis];
        Ok(vec![Some(cx.g.one(Pad { axis: self.axis, before: self.start, total }, &[dy])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(1, 4);
        let axis = g.dim(0, shape.len() - 1);
        let start = g.dim(0, shape[axis] - 1);
        let len = g.dim(1, shape[axis] - start);
        Sample::new(Self { axis, start, len }, vec![(TensorType::f32(shape), Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }

    fn alias(&self, input: &View) -> Option<Vec<View>> {
        Some(vec![self.view(input)])
    }
}

impl Graph {
    /// Elements `start..start + len` of an axis.
    ///
    /// # Errors
    /// If the range is not inside the axis.
    #[track_caller]
    pub fn slice(&mut self, x: Value, axis: usize, start: usize, len: usize) -> Result<Value, GraphError> {
        self.one(Slice { axis, start, len }, &[x])
    }
}
