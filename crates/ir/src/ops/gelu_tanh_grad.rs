//! `gelu_tanh_grad`: the gradient of the tanh form of the GELU.

use super::common::{arity, float, per_output, shaped};
use super::gelu_tanh::CUBE;
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};

/// Inputs `x` and `dy` of one type; output `dx = dy (1 + t + x (1 - t^2) u') / 2` with `t = tanh(u)`,
/// `u = sqrt(2 / pi) (x + 0.044715 x^3)`.
#[derive(Clone, Debug, PartialEq)]
pub struct GeluTanhGrad;

impl OpDef for GeluTanhGrad {
    const NAME: &'static str = "gelu_tanh_grad";

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
        let (one, root) = (R::one(), R::of((2.0 / std::f64::consts::PI).sqrt()));
        let slope = |x: R| {
            let t = (root * (x + R::of(CUBE) * x * x * x)).tanh();
            let inner = root * (one + R::of(3.0 * CUBE) * x * x);
            R::of(0.5) * (one + t + x * (one - t * t) * inner)
        };
        let data = inputs[0].as_real().iter().zip(inputs[1].as_real()).map(|(&x, &dy)| dy * slope(x)).collect();
        vec![Tensor::real(inputs[0].shape.clone(), data)]
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
