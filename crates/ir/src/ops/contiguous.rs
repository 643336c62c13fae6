//! `contiguous`: a copy in row-major order without gaps. Models never ask for it; the memory pass puts it in
//! where a kernel cannot read the view it was given.

use super::common::{arity, per_output};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};

/// Copies a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Contiguous;

impl OpDef for Contiguous {
    const NAME: &'static str = "contiguous";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        Ok(vec![inputs[0].clone()])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        vec![inputs[0].clone()]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        Ok(vec![Some(cx.only(0)?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        Sample::new(Self, vec![(TensorType::f32(g.shape(0, 4)), Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 0)
    }
}
