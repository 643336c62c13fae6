//! `split`: an axis cut into equal parts. Views.

use super::common::arity;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::{Concat, Slice};
use crate::tensor::{Real, Tensor};
use crate::{TensorType, Value, View};

/// Cuts `axis` into `parts` equal ranges, one output each.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The axis cut.
    pub axis: usize,
    /// Number of outputs; divides the extent.
    pub parts: usize,
}

impl Split {
    fn views(&self, v: &View) -> Vec<View> {
        let len = v.shape[self.axis] / self.parts;
        (0..self.parts).map(|i| Slice { axis: self.axis, start: i * len, len }.view(v)).collect()
    }
}

impl OpDef for Split {
    const NAME: &'static str = "split";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        let mut ty = inputs[0].clone();
        let have = *ty.shape.get(self.axis).ok_or_else(|| format!("{ty} has no axis {}", self.axis))?;
        if self.parts == 0 || have % self.parts != 0 {
            return Err(format!("axis {} of {ty} does not divide into {} parts", self.axis, self.parts));
        }
        ty.shape.0[self.axis] = have / self.parts;
        Ok(vec![ty; self.parts])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        self.views(&View::contiguous(inputs[0].shape.clone())).iter().map(|v| inputs[0].gather(v)).collect()
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let parts: Vec<Value> = (0..self.parts)
            .map(|i| cx.grads[i].unwrap_or_else(|| cx.g.zeros(cx.g.ty(cx.outputs[i]).clone())))
            .collect();
        Ok(vec![Some(cx.g.one(Concat { axis: self.axis }, &parts)?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let mut shape = g.shape(1, 4);
        let axis = g.dim(0, shape.len() - 1);
        let parts = g.dim(1, 3);
        shape[axis] *= parts;
        let op = Self { axis, parts };
        Sample { op: op.into(), inputs: vec![(TensorType::f32(shape), Fill::Normal)], differentiable: (0..parts).collect() }
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }

    fn alias(&self, input: &View) -> Option<Vec<View>> {
        Some(self.views(input))
    }
}
