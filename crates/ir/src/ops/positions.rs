//! `positions`: consecutive numbers from a start that is known at run time.

use super::common::{arity, exact, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Graph, GraphError, TensorType, Value};

/// Input start u32 `[]`, output u32 `[len]`: `start + i`, wrapping at 2^32.
#[derive(Clone, Debug, PartialEq)]
pub struct Positions {
    /// How many.
    pub len: usize,
}

impl OpDef for Positions {
    const NAME: &'static str = "positions";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        exact(inputs[0], &TensorType::u32([]), "the start")?;
        Ok(vec![TensorType::u32([self.len])])
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let start = inputs[0].as_u32()[0];
        vec![Tensor::u32([self.len], (0..self.len).map(|i| start.wrapping_add(i as u32)).collect())]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("it counts")
    }

    fn sample(g: &mut Gen) -> Sample {
        let len = g.dim(1, 9);
        Sample::no_gradient(Self { len }, vec![(TensorType::u32([]), Fill::Below(1000))])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 1)
    }
}

impl Graph {
    /// `start + i` for i below `len`, u32 `[len]`.
    ///
    /// # Errors
    /// If the start is not u32 `[]`.
    #[track_caller]
    pub fn positions(&mut self, start: Value, len: usize) -> Result<Value, GraphError> {
        self.one(Positions { len }, &[start])
    }
}
