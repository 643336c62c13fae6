//! `update_slice`: writes rows into a tensor at a place that is known only when the program runs: keys and
//! values while decoding (rule 11), metrics in their ring.

use super::common::arity;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Data, Real, Tensor};
use crate::{DType, TensorType, View};

/// Inputs base, patch (same rank; equal extents but for `axis`), position u32 `[]`; output like base, with the
/// patch at `position % extent`, wrapping around the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateSlice {
    /// The axis along which the patch is placed.
    pub axis: usize,
}

impl UpdateSlice {
    /// Where row `i` of the patch goes, for a position and an extent of the axis.
    pub fn row(position: u32, i: usize, extent: usize) -> usize {
        (position as usize + i) % extent
    }
}

impl OpDef for UpdateSlice {
    const NAME: &'static str = "update_slice";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 3)?;
        let (base, patch) = (inputs[0], inputs[1]);
        super::common::exact(inputs[2], &TensorType::u32([]), "the position")?;
        let fits = base.dtype == patch.dtype
            && base.dtype != DType::U8
            && base.shape.len() == patch.shape.len()
            && self.axis < base.shape.len()
            && (0..base.shape.len())
                .all(|i| if i == self.axis { patch.shape[i] <= base.shape[i] } else { patch.shape[i] == base.shape[i] });
        if fits { Ok(vec![base.clone()]) } else { Err(format!("cannot place {patch} in {base} along axis {}", self.axis)) }
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let mut out = inputs[0].clone();
        let (extent, rows) = (out.shape[self.axis], inputs[1].shape[self.axis]);
        let whole = View::contiguous(out.shape.clone());
        let from = View::contiguous(inputs[1].shape.clone());
        for i in 0..rows {
            let cut = |v: &View, start| super::Slice { axis: self.axis, start, len: 1 }.view(v);
            let to = cut(&whole, Self::row(inputs[2].as_u32()[0], i, extent));
            let row = inputs[1].gather(&cut(&from, i));
            let mut j = 0;
            to.for_each(|at| {
                match (&mut out.data, &row.data) {
                    (Data::Real(o), Data::Real(r)) => o[at] = r[j],
                    (Data::U32(o), Data::U32(r)) => o[at] = r[j],
                    _ => unreachable!("one dtype, checked before"),
                }
                j += 1;
            });
        }
        vec![out]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("caches and rings take no part in training")
    }

    fn sample(g: &mut Gen) -> Sample {
        let base = g.shape(1, 4);
        let axis = g.dim(0, base.len() - 1);
        let mut patch = base.clone();
        patch[axis] = g.dim(1, base[axis]);
        let inputs = vec![
            (TensorType::f32(base), Fill::Normal),
            (TensorType::f32(patch), Fill::Normal),
            (TensorType::u32([]), Fill::Below(20)),
        ];
        Sample::no_gradient(Self { axis }, inputs)
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }

    fn bytes(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        2 * inputs[1].bytes() as u64
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }
}
