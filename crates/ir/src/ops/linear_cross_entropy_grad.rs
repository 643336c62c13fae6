//! `linear_cross_entropy_grad`: the gradients of the summed loss of a linear layer, its logits computed again.

use super::common::{arity, exact};
use super::linear_cross_entropy::{counts, logits};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::LinearCrossEntropy;
use crate::tensor::{Real, Tensor};

/// Inputs hidden `[N, C]`, weight `[V, C]`, targets u32 `[N]`, weights f32 `[N]`, lse f32 `[N]`, dloss f32 `[]`.
/// Outputs dhidden like hidden and dweight like weight.
///
/// With d = `dloss w (softmax - onehot(target))` `[N, V]`, 0 in rows that add nothing to the loss: dhidden = d weight,
/// dweight = d^T hidden.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearCrossEntropyGrad;

impl OpDef for LinearCrossEntropyGrad {
    const NAME: &'static str = "linear_cross_entropy_grad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 6)?;
        let forward = LinearCrossEntropy.infer(&inputs[..4])?;
        exact(inputs[4], &forward[1], "lse")?;
        exact(inputs[5], &forward[0], "dloss")?;
        Ok([0, 1].map(|i| TensorType::f32(inputs[i].shape.clone())).into())
    }

    fn storage(&self, output: usize) -> Storage {
        if output == 0 { Storage::Half } else { Storage::Wide }
    }

    fn operands(&self) -> &'static [usize] {
        &[0, 1]
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (hidden, weight) = (inputs[0].as_real(), inputs[1].as_real());
        let (targets, weights) = (inputs[2].as_u32(), inputs[3].as_real());
        let (lse, dloss) = (inputs[4].as_real(), inputs[5].as_real()[0]);
        let [n, c] = inputs[0].shape[..] else { return vec![] };
        let v = inputs[1].shape[0];
        let mut grads = [hidden.len(), weight.len()].map(|n| vec![R::zero(); n]);
        let [dhidden, dweight] = &mut grads;
        for i in (0..n).filter(|&i| counts(targets, weights, v, i)) {
            let row = &hidden[i * c..][..c];
            for (j, x) in logits(row, weight, c).into_iter().enumerate() {
                let hot = if targets[i] as usize == j { R::one() } else { R::zero() };
                let d = dloss * weights[i] * ((x - lse[i]).exp() - hot);
                for k in 0..c {
                    dhidden[i * c + k] += d * weight[j * c + k];
                    dweight[j * c + k] += d * row[k];
                }
            }
        }
        let [dhidden, dweight] = grads;
        vec![Tensor::real([n, c], dhidden), Tensor::real([v, c], dweight)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("second derivatives are not offered")
    }

    fn sample(g: &mut Gen) -> Sample {
        let forward = LinearCrossEntropy::sample(g);
        let n = forward.inputs[2].0.shape[0];
        let more = vec![(TensorType::f32([n]), Fill::Range(2.0, 4.0)), (TensorType::f32([]), Fill::Normal)];
        Sample::no_gradient(Self, [forward.inputs, more].concat())
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        let (rows, c) = inputs[0].shape.rows();
        (rows * inputs[1].shape[0]) as u64 * (6 * c as u64 + 10)
    }
}
