//! `state_write`: makes a value the contents of a state slot when the program ends. No output.

use super::common::{arity, exact};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{SlotId, TensorType};

/// Writes a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct StateWrite {
    /// The slot.
    pub slot: SlotId,
    /// Its type.
    pub ty: TensorType,
}

impl OpDef for StateWrite {
    const NAME: &'static str = "state_write";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        exact(inputs[0], &self.ty, "the new contents")?;
        Ok(vec![])
    }

    fn eval<R: Real>(&self, _: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        vec![]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("writing the state ends a program")
    }

    fn sample(g: &mut Gen) -> Sample {
        let ty = TensorType::f32(g.shape(0, 3));
        Sample::no_gradient(Self { slot: SlotId(0), ty: ty.clone() }, vec![(ty, Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
