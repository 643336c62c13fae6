//! `sum_squares`: the squared length of many tensors taken as one vector, for the global gradient norm.

use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};

/// The sum of the squares of all elements of all inputs, an f32 scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct SumSquares;

impl OpDef for SumSquares {
    const NAME: &'static str = "sum_squares";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        inputs.iter().try_for_each(|ty| super::common::float(ty, "each input"))?;
        Ok(vec![TensorType::f32([])])
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let sum = inputs.iter().flat_map(|t| t.as_real()).map(|&x| x * x).sum();
        vec![Tensor::real([], vec![sum])]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("it measures gradients")
    }

    fn sample(g: &mut Gen) -> Sample {
        let inputs = (0..g.dim(1, 4)).map(|_| (TensorType::f32(g.shape(0, 3)), Fill::Normal)).collect();
        Sample::no_gradient(Self, inputs)
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        inputs.iter().map(|t| 2 * t.shape.numel() as u64).sum()
    }
}
