//! `linear_cross_entropy`: the summed, weighted negative log likelihood of `hidden weight^T`, whose logits are never
//! in memory at once: at a vocabulary of 49 thousand they are far larger than all else in a step.

use super::common::{arity, exact, float};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::ops::LinearCrossEntropyGrad;
use crate::tensor::{Real, Tensor};
use crate::{Graph, GraphError, TensorType, Value};

/// Inputs hidden `[N, C]`, weight `[V, C]` of the same dtype, targets u32 `[N]`, weights f32 `[N]`. Outputs f32:
/// `sum(w (lse - logit[target]))` with `logit = weight hidden`, a scalar, and lse `[N]`, the logarithm of the sum of
/// exponentials of each row's logits, which the gradient reads.
///
/// The same loss as a matrix product and a `cross_entropy`: a row of weight 0, or with a target outside `0..V`, adds
/// exactly 0. Executors take chunks of rows and of the vocabulary; the gradient computes the logits again.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearCrossEntropy;

/// Logits of one row, the plain definition.
pub(super) fn logits<R: Real>(hidden: &[R], weight: &[R], c: usize) -> Vec<R> {
    weight.chunks(c.max(1)).map(|w| w.iter().zip(hidden).map(|(&w, &h)| w * h).sum()).collect()
}

/// True if row `i` adds to the loss.
pub(super) fn counts<R: Real>(targets: &[u32], weights: &[R], v: usize, i: usize) -> bool {
    weights[i] != R::zero() && (targets[i] as usize) < v
}

impl OpDef for LinearCrossEntropy {
    const NAME: &'static str = "linear_cross_entropy";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 4)?;
        let (hidden, weight) = (inputs[0], inputs[1]);
        float(hidden, "hidden")?;
        let (&[n, c], &[_, wc]) = (&hidden.shape[..], &weight.shape[..]) else {
            return Err(format!("takes hidden [N, C] and weight [V, C], found {hidden} and {weight}"));
        };
        if c != wc || hidden.dtype != weight.dtype {
            return Err(format!("hidden and weight must have one width and dtype, found {hidden} and {weight}"));
        }
        exact(inputs[2], &TensorType::u32([n]), "the targets")?;
        exact(inputs[3], &TensorType::f32([n]), "the weights")?;
        Ok(vec![TensorType::f32([]), TensorType::f32([n])])
    }

    fn operands(&self) -> &'static [usize] {
        &[0, 1]
    }

    fn reads_half(&self) -> bool {
        true
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (hidden, weight) = (inputs[0].as_real(), inputs[1].as_real());
        let (targets, weights) = (inputs[2].as_u32(), inputs[3].as_real());
        let [n, c] = inputs[0].shape[..] else { return vec![] };
        let v = inputs[1].shape[0];
        let (mut loss, mut lse) = (R::zero(), Vec::with_capacity(n));
        for i in 0..n {
            let row = logits(&hidden[i * c..][..c], weight, c);
            let max = row.iter().copied().fold(R::neg_infinity(), R::max);
            let sum = max + row.iter().map(|&x| (x - max).exp()).sum::<R>().ln();
            lse.push(sum);
            if counts(targets, weights, v, i) {
                loss += weights[i] * (sum - row[targets[i] as usize]);
            }
        }
        vec![Tensor::real([], vec![loss]), Tensor::real([n], lse)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let inputs: Vec<Value> = [cx.inputs, &[cx.outputs[1], dy]].concat();
        let grads = cx.g.many(LinearCrossEntropyGrad, &inputs)?;
        Ok(grads.into_iter().map(Some).chain([None, None]).collect())
    }

    fn sample(g: &mut Gen) -> Sample {
        let (n, c, v) = (g.dim(1, 6), g.dim(1, 5), g.dim(1, 9));
        let inputs = vec![
            (TensorType::f32([n, c]), Fill::Normal),
            (TensorType::f32([v, c]), Fill::Normal),
            (TensorType::u32([n]), Fill::Below(v as u32 + 1)),
            (TensorType::f32([n]), Fill::Range(0.0, 2.0)),
        ];
        Sample::new(Self, inputs)
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        let (rows, c) = inputs[0].shape.rows();
        (rows * inputs[1].shape[0]) as u64 * (2 * c as u64 + 10)
    }
}

impl Graph {
    /// The summed loss of `hidden weight^T` against `targets`, each row weighted; f32 `[]`.
    ///
    /// # Errors
    /// If the shapes do not fit.
    #[track_caller]
    pub fn linear_cross_entropy(
        &mut self,
        hidden: Value,
        weight: Value,
        targets: Value,
        weights: Value,
    ) -> Result<Value, GraphError> {
        self.one(LinearCrossEntropy, &[hidden, weight, targets, weights])
    }
}
