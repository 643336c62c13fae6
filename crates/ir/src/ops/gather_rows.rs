//! `gather_rows`: rows of a table by index; an embedding.

use super::common::{arity, float, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::ScatterRows;
use crate::tensor::{Real, Tensor};
use crate::{DType, Graph, GraphError, TensorType, Value};

/// Inputs table `[V, C]` and ids u32 `[..]`; output `[.., C]`, row `table[id]` for each id.
///
/// An id outside the table gives a row of zeros and no gradient, on every executor: kernels must not read out
/// of bounds, and the host checks ids before they get here.
#[derive(Clone, Debug, PartialEq)]
pub struct GatherRows;

impl OpDef for GatherRows {
    const NAME: &'static str = "gather_rows";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 2)?;
        float(inputs[0], "the table")?;
        if inputs[0].shape.len() != 2 || inputs[1].dtype != DType::U32 {
            return Err(format!("takes a table [V, C] and u32 ids, found {} and {}", inputs[0], inputs[1]));
        }
        let shape = [&inputs[1].shape[..], &[inputs[0].shape[1]]].concat();
        Ok(vec![TensorType::f32(shape)])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Stream
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (table, ids) = (inputs[0].as_real(), inputs[1].as_u32());
        let c = inputs[0].shape[1];
        let zeros = vec![R::zero(); c];
        let row = |&id: &u32| table.chunks(c.max(1)).nth(id as usize).unwrap_or(&zeros);
        let data = ids.iter().flat_map(row).copied().collect();
        vec![Tensor::real([&inputs[1].shape[..], &[c]].concat(), data)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let rows = cx.shape(0)[0];
        Ok(vec![Some(cx.g.one(ScatterRows { rows }, &[cx.inputs[1], dy])?), None])
    }

    fn sample(g: &mut Gen) -> Sample {
        let (v, c) = (g.dim(1, 6), g.dim(1, 6));
        let ids = TensorType::u32(g.shape(1, 2));
        Sample::new(Self, vec![(TensorType::f32([v, c]), Fill::Normal), (ids, Fill::Below(v as u32))])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 0)
    }

    fn bytes(&self, inputs: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        (inputs[1].bytes() + 2 * outputs[0].bytes()) as u64
    }
}

impl Graph {
    /// Rows of `table` by index.
    ///
    /// # Errors
    /// If the table is not a float matrix or the ids are not u32.
    #[track_caller]
    pub fn gather_rows(&mut self, table: Value, ids: Value) -> Result<Value, GraphError> {
        self.one(GatherRows, &[table, ids])
    }
}
