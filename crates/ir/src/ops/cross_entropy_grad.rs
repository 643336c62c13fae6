//! `cross_entropy_grad`: the gradient of the summed cross entropy.

use super::common::{arity, exact};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::CrossEntropy;
use crate::tensor::{Real, Tensor};

/// Inputs logits `[N, V]`, targets u32 `[N]`, weights f32 `[N]`, lse f32 `[N]`, dloss f32 `[]`; output like the
/// logits: `dloss w (softmax - onehot(target))`, 0 in rows that add nothing to the loss.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossEntropyGrad;

impl OpDef for CrossEntropyGrad {
    const NAME: &'static str = "cross_entropy_grad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 5)?;
        let forward = CrossEntropy.infer(&inputs[..3])?;
        exact(inputs[3], &forward[1], "lse")?;
        exact(inputs[4], &forward[0], "dloss")?;
        Ok(vec![TensorType::f32(inputs[0].shape.clone())])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (logits, targets, weights) = (inputs[0].as_real(), inputs[1].as_u32(), inputs[2].as_real());
        let (lse, dloss) = (inputs[3].as_real(), inputs[4].as_real()[0]);
        let v = inputs[0].shape[1];
        let element = |i: usize| {
            let (row, col) = (i / v, i % v);
            if weights[row] == R::zero() || targets[row] as usize >= v {
                return R::zero();
            }
            let hot = if targets[row] as usize == col { R::one() } else { R::zero() };
            dloss * weights[row] * ((logits[i] - lse[row]).exp() - hot)
        };
        vec![Tensor::from_fn(inputs[0].shape.clone(), element)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("second derivatives are not offered")
    }

    fn sample(g: &mut Gen) -> Sample {
        let forward = CrossEntropy::sample(g);
        let n = forward.inputs[1].0.shape[0];
        let more = vec![(TensorType::f32([n]), Fill::Range(2.0, 4.0)), (TensorType::f32([]), Fill::Normal)];
        Sample::no_gradient(Self, [forward.inputs, more].concat())
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        inputs[0].shape.numel() as u64 * 10
    }
}
