//! `pad`: zeros before and behind along one axis. The transpose of `slice`.

use super::common::{arity, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Data, Real, Tensor};
use crate::{TensorType, View};

/// Puts the input at `before..` of an axis of extent `total`, zeros elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// The axis widened.
    pub axis: usize,
    /// Zeros in front.
    pub before: usize,
    /// Extent of the axis in the output.
    pub total: usize,
}

impl Pad {
    /// Where the input lies in the output.
    pub fn place(&self, output: &View, len: usize) -> View {
        super::Slice { axis: self.axis, start: self.before, len }.view(output)
    }
}

impl OpDef for Pad {
    const NAME: &'static str = "pad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        super::common::float(inputs[0], "the input")?;
        let have = *inputs[0].shape.get(self.axis).ok_or_else(|| format!("{} has no axis {}", inputs[0], self.axis))?;
        if self.before + have > self.total {
            return Err(format!("{have} rows after {} do not fit in {}", self.before, self.total));
        }
        let mut shape = inputs[0].shape.clone();
        shape.0[self.axis] = self.total;
        Ok(vec![TensorType::new(inputs[0].dtype, shape)])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let mut shape = inputs[0].shape.clone();
        shape.0[self.axis] = self.total;
        let mut data = vec![R::zero(); shape.numel()];
        let mut from = inputs[0].as_real().iter();
        let place = self.place(&View::contiguous(shape.clone()), inputs[0].shape[self.axis]);
        place.for_each(|i| data[i] = from.next().copied().unwrap_or_default());
        vec![Tensor { shape, data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let len = cx.shape(0)[self.axis];
        Ok(vec![Some(cx.g.slice(dy, self.axis, self.before, len)?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(1, 4);
        let axis = g.dim(0, shape.len() - 1);
        let before = g.dim(0, 3);
        let total = before + shape[axis] + g.dim(0, 3);
        Sample::new(Self { axis, before, total }, vec![(TensorType::f32(shape), Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 0)
    }
}
