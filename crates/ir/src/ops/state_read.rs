//! `state_read`: a state slot as it is when the program starts. For a parameter this node is its use: sharding
//! replaces it by an all-gather with a lifetime of its own (rule 8).

use crate::op::{Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{SlotId, TensorType};

/// Reads a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRead {
    /// The slot.
    pub slot: SlotId,
    /// Its type.
    pub ty: TensorType,
}

impl OpDef for StateRead {
    const NAME: &'static str = "state_read";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        super::common::arity(inputs, 0)?;
        Ok(vec![self.ty.clone()])
    }

    /// The evaluator replaces this by the slot's contents; alone, it is zeros.
    fn eval<R: Real>(&self, _: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        vec![Tensor::zeros(&self.ty)]
    }

    fn vjp(&self, _: &mut Vjp<'_>) -> Gradients {
        Ok(vec![])
    }

    fn sample(g: &mut Gen) -> Sample {
        Sample::no_gradient(Self { slot: SlotId(0), ty: TensorType::f32(g.shape(0, 3)) }, vec![])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
