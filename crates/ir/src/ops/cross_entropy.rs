//! `cross_entropy`: the summed, weighted negative log likelihood. A sum, not a mean (rule 4): the division by
//! the global weight happens when the gradient is applied, after accumulation and reduction over ranks.

use super::common::{arity, exact, float};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::ops::CrossEntropyGrad;
use crate::tensor::{Real, Tensor};
use crate::{TensorType, Value};

/// Inputs logits `[N, V]`, targets u32 `[N]`, weights f32 `[N]`. Outputs f32: `sum(w (lse - logit[target]))`,
/// a scalar, and lse `[N]`, the logarithm of the sum of exponentials of each row.
///
/// A row of weight 0 adds exactly 0, whatever its logits and target; a target outside `0..V` adds 0 too.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossEntropy;

impl OpDef for CrossEntropy {
    const NAME: &'static str = "cross_entropy";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 3)?;
        float(inputs[0], "the logits")?;
        let &[n, _] = &inputs[0].shape[..] else { return Err(format!("logits must be [N, V], found {}", inputs[0])) };
        exact(inputs[1], &TensorType::u32([n]), "the targets")?;
        exact(inputs[2], &TensorType::f32([n]), "the weights")?;
        Ok(vec![TensorType::f32([]), TensorType::f32([n])])
    }

    fn reads_half(&self) -> bool {
        true
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (targets, weights) = (inputs[1].as_u32(), inputs[2].as_real());
        let v = inputs[0].shape[1];
        let rows: Vec<&[R]> = inputs[0].as_real().chunks(v.max(1)).collect();
        let lse: Vec<R> = rows
            .iter()
            .map(|row| {
                let max = row.iter().copied().fold(R::neg_infinity(), R::max);
                max + row.iter().map(|&x| (x - max).exp()).sum::<R>().ln()
            })
            .collect();
        let loss = (0..rows.len())
            .filter(|&i| weights[i] != R::zero() && (targets[i] as usize) < v)
            .map(|i| weights[i] * (lse[i] - rows[i][targets[i] as usize]))
            .sum();
        vec![Tensor::real([], vec![loss]), Tensor::real([rows.len()], lse)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let inputs: Vec<Value> = [cx.inputs, &[cx.outputs[1], dy]].concat();
        Ok(vec![Some(cx.g.one(CrossEntropyGrad, &inputs)?), None, None])
    }

    fn sample(g: &mut Gen) -> Sample {
        let (n, v) = (g.dim(1, 6), g.dim(1, 9));
        let inputs = vec![
            (TensorType::f32([n, v]), Fill::Normal),
            (TensorType::u32([n]), Fill::Below(v as u32)),
            (TensorType::f32([n]), Fill::Range(0.0, 2.0)),
        ];
        Sample::new(Self, inputs)
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        inputs[0].shape.numel() as u64 * 10
    }
}
