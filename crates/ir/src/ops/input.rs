//! `input`: a tensor that the host fills before each run. Everything that changes between runs and is not state
//! comes in this way (rule 2): never as a constant, never as a shape.

use crate::TensorType;
use crate::op::{Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use std::sync::Arc;

/// A named program input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Name by which the host fills it.
    pub name: Arc<str>,
    /// Its shape and dtype.
    pub ty: TensorType,
}

impl OpDef for Input {
    const NAME: &'static str = "input";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        super::common::arity(inputs, 0)?;
        Ok(vec![self.ty.clone()])
    }

    /// The evaluator replaces this by what the host gave; alone, it is zeros.
    fn eval<R: Real>(&self, _: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        vec![Tensor::zeros(&self.ty)]
    }

    fn vjp(&self, _: &mut Vjp<'_>) -> Gradients {
        Ok(vec![])
    }

    fn sample(g: &mut Gen) -> Sample {
        Sample::no_gradient(Self { name: "x".into(), ty: TensorType::f32(g.shape(0, 3)) }, vec![])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
