//! `gelu_grad`: the gradient of the exact GELU.

use super::common::{arity, float, per_output, shaped};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Data, Real, Tensor};

/// Inputs `x` and `dy` of one type; output `dx = dy (Phi(x) + x phi(x))`, with the normal distribution's `Phi`
/// and density `phi`.
#[derive(Clone, Debug, PartialEq)]
pub struct GeluGrad;

impl OpDef for GeluGrad {
    const NAME: &'static str = "gelu_grad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 2)?;
        float(inputs[0], "x")?;
        shaped(inputs[1], &inputs[0].shape, "dy")?;
        Ok(vec![TensorType::f32(inputs[0].shape.clone())])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let slope = |x: f64| {
            let cdf = 0.5 * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2));
            cdf + x * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
        };
        let data =
            inputs[0].as_real().iter().zip(inputs[1].as_real()).map(|(x, &dy)| dy * R::of(slope(x.f64()))).collect();
        vec![Tensor { shape: inputs[0].shape.clone(), data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("second derivatives are not offered")
    }

    fn sample(g: &mut Gen) -> Sample {
        let ty = TensorType::f32(g.shape(0, 4));
        Sample::no_gradient(Self, vec![(ty.clone(), Fill::Normal), (ty, Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 20)
    }
}
