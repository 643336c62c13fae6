//! `scatter_rows`: adds rows up by index; the transpose of `gather_rows`. Rows of one index are added in the
//! order they stand in, so that no result depends on threads.

use super::common::{arity, float};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::ops::GatherRows;
use crate::tensor::{Real, Tensor};
use crate::{DType, TensorType};

/// Inputs ids u32 `[..]` and rows `[.., C]`; output `[rows, C]`, in f32 or the rows' dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct ScatterRows {
    /// Rows of the output.
    pub rows: usize,
}

impl OpDef for ScatterRows {
    const NAME: &'static str = "scatter_rows";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 2)?;
        float(inputs[1], "the rows")?;
        let c = *inputs[1].shape.last().ok_or("the rows need an axis")?;
        if inputs[0].dtype != DType::U32 || inputs[1].shape[..inputs[1].shape.len() - 1] != inputs[0].shape[..] {
            return Err(format!("takes u32 ids [..] and rows [.., C], found {} and {}", inputs[0], inputs[1]));
        }
        Ok(vec![TensorType::f32([self.rows, c])])
    }

    fn reads_half(&self) -> bool {
        true
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (ids, rows) = (inputs[0].as_u32(), inputs[1].as_real());
        let (_, c) = inputs[1].shape.rows();
        let mut out = vec![R::zero(); self.rows * c];
        for (&id, row) in ids.iter().zip(rows.chunks(c.max(1))) {
            if (id as usize) < self.rows {
                out[id as usize * c..][..c].iter_mut().zip(row).for_each(|(o, &x)| *o += x);
            }
        }
        vec![Tensor::real([self.rows, c], out)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        Ok(vec![None, Some(cx.g.one(GatherRows, &[dy, cx.inputs[0]])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let (rows, c) = (g.dim(1, 6), g.dim(1, 6));
        let ids = g.shape(1, 2);
        let values = TensorType::f32([&ids[..], &[c]].concat());
        let inputs = vec![(TensorType::u32(ids), Fill::Below(rows as u32)), (values, Fill::Normal)];
        Sample::new(Self { rows }, inputs)
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        inputs[1].shape.numel() as u64
    }
}
