//! `swiglu_grad`: the gradients of a SwiGLU.

use super::common::{arity, float, per_output, shaped};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};

/// Inputs gate, up and dy of one type; outputs like them. With s = 1 / (1 + e^-gate):
/// dgate = dy up s (1 + gate (1 - s)); dup = dy gate s.
#[derive(Clone, Debug, PartialEq)]
pub struct SwigluGrad;

impl OpDef for SwigluGrad {
    const NAME: &'static str = "swiglu_grad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 3)?;
        float(inputs[0], "the gate")?;
        shaped(inputs[1], &inputs[0].shape, "what is gated")?;
        shaped(inputs[2], &inputs[0].shape, "dy")?;
        Ok(vec![TensorType::f32(inputs[0].shape.clone()); 2])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let [gate, up, dy] = [0, 1, 2].map(|i| inputs[i].as_real());
        let one = R::one();
        let open = |x: R| one / (one + (-x).exp());
        let shape = &inputs[0].shape;
        let dgate = |i: usize| dy[i] * up[i] * open(gate[i]) * (one + gate[i] * (one - open(gate[i])));
        let dup = |i: usize| dy[i] * gate[i] * open(gate[i]);
        vec![Tensor::from_fn(shape.clone(), dgate), Tensor::from_fn(shape.clone(), dup)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("second derivatives are not offered")
    }

    fn sample(g: &mut Gen) -> Sample {
        let ty = TensorType::f32(g.shape(0, 4));
        Sample::no_gradient(Self, vec![(ty.clone(), Fill::Normal), (ty.clone(), Fill::Normal), (ty, Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 18)
    }
}
