//! `concat`: tensors one after the other along an axis.

use super::common::per_output;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::Slice;
use crate::tensor::{Data, Real, Tensor};
use crate::{Graph, GraphError, TensorType, Value, View};

/// Joins all inputs along `axis`.
#[derive(Clone, Debug, PartialEq)]
pub struct Concat {
    /// The axis joined.
    pub axis: usize,
}

impl Concat {
    /// Where each input, of extent `lens[i]` along the axis, lies in the output.
    pub fn places(&self, output: &View, lens: &[usize]) -> Vec<View> {
        let starts = lens.iter().scan(0, |at, &len| Some(std::mem::replace(at, *at + len)));
        starts.zip(lens).map(|(start, &len)| Slice { axis: self.axis, start, len }.view(output)).collect()
    }
}

impl OpDef for Concat {
    const NAME: &'static str = "concat";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        let first = inputs.first().ok_or("needs at least one input")?;
        super::common::float(first, "each input")?;
        let mut out = (*first).clone();
        if self.axis >= out.shape.len() {
            return Err(format!("{first} has no axis {}", self.axis));
        }
        out.shape.0[self.axis] = 0;
        for ty in inputs {
            let fits = ty.dtype == out.dtype
                && ty.shape.len() == out.shape.len()
                && (0..out.shape.len()).all(|i| i == self.axis || ty.shape[i] == out.shape[i]);
            if !fits {
                return Err(format!("cannot join {first} and {ty} along axis {}", self.axis));
            }
            out.shape.0[self.axis] += ty.shape[self.axis];
        }
        Ok(vec![out])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let lens: Vec<usize> = inputs.iter().map(|t| t.shape[self.axis]).collect();
        let mut shape = inputs[0].shape.clone();
        shape.0[self.axis] = lens.iter().sum();
        let mut data = vec![R::zero(); shape.numel()];
        for (input, place) in inputs.iter().zip(self.places(&View::contiguous(shape.clone()), &lens)) {
            let mut from = input.as_real().iter();
            place.for_each(|i| data[i] = from.next().copied().unwrap_or_default());
        }
        vec![Tensor { shape, data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let mut start = 0;
        (0..cx.inputs.len())
            .map(|i| {
                let len = cx.shape(i)[self.axis];
                let grad = cx.g.slice(dy, self.axis, start, len)?;
                start += len;
                Ok(Some(grad))
            })
            .collect()
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(1, 4);
        let axis = g.dim(0, shape.len() - 1);
        let inputs = (0..g.dim(1, 3))
            .map(|_| {
                let mut shape = shape.clone();
                shape[axis] = g.dim(1, 4);
                (TensorType::f32(shape), Fill::Normal)
            })
            .collect();
        Sample::new(Self { axis }, inputs)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 0)
    }
}

impl Graph {
    /// Joins values along an axis.
    ///
    /// # Errors
    /// If their other extents or dtypes differ.
    #[track_caller]
    pub fn concat(&mut self, parts: &[Value], axis: usize) -> Result<Value, GraphError> {
        self.one(Concat { axis }, parts)
    }
}
