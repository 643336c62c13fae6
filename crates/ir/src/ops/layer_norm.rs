//! `layer_norm`: zero mean and unit variance along the last axis, then scale and shift (Ba et al. 2016).

use super::common::{arity, float, narrow_rows, per_output, shaped};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::LayerNormGrad;
use crate::tensor::{Data, Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// Inputs x `[.., C]`, gamma `[C]`, beta `[C]`. Outputs y like x, and the f32 statistics mean and
/// 1 / sqrt(variance + eps), one per row, which the gradient reads.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    /// Added to the variance; 1e-5 in PyTorch.
    pub eps: f64,
}

/// Mean and reciprocal standard deviation of a row; the variance is the mean squared distance (divided by n).
fn statistics<R: Real>(row: &[R], eps: f64) -> (R, R) {
    let n = R::of(row.len() as f64);
    let mean = row.iter().copied().sum::<R>() / n;
    let var = row.iter().map(|&x| (x - mean) * (x - mean)).sum::<R>() / n;
    (mean, (var + R::of(eps)).sqrt().recip())
}

impl OpDef for LayerNorm {
    const NAME: &'static str = "layer_norm";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 3)?;
        let x = inputs[0];
        float(x, "x")?;
        let (rows, cols) = x.shape.rows();
        shaped(inputs[1], &[cols], "gamma")?;
        shaped(inputs[2], &[cols], "beta")?;
        Ok(vec![TensorType::f32(x.shape.clone()), TensorType::f32([rows]), TensorType::f32([rows])])
    }

    fn storage(&self, output: usize) -> Storage {
        if output == 0 { Storage::Stream } else { Storage::Wide }
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (x, gamma, beta) = (inputs[0].as_real(), inputs[1].as_real(), inputs[2].as_real());
        let (rows, cols) = inputs[0].shape.rows();
        let stats: Vec<(R, R)> = x.chunks(cols.max(1)).map(|row| statistics(row, self.eps)).collect();
        let data = (0..x.len())
            .map(|i| (x[i] - stats[i / cols].0) * stats[i / cols].1 * gamma[i % cols] + beta[i % cols])
            .collect();
        vec![
            Tensor { shape: inputs[0].shape.clone(), data: Data::Real(data) },
            Tensor::real([rows], stats.iter().map(|s| s.0).collect()),
            Tensor::real([rows], stats.iter().map(|s| s.1).collect()),
        ]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let inputs = [cx.inputs[0], cx.inputs[1], cx.outputs[1], cx.outputs[2], dy];
        Ok(cx.g.many(LayerNormGrad, &inputs)?.into_iter().map(Some).collect())
    }

    fn sample(g: &mut Gen) -> Sample {
        let mut shape = g.shape(1, 3);
        if let Some(last) = shape.last_mut() {
            *last += 1; // a single column has no variance: its gradient is noise around 0
        }
        let c = TensorType::f32([*shape.last().unwrap_or(&1)]);
        let inputs = vec![(TensorType::f32(shape), Fill::Normal), (c.clone(), Fill::Normal), (c, Fill::Normal)];
        Sample::new(Self { eps: 1e-2 }, inputs)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 8)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_rows(cut, inputs, output)
    }
}

impl Graph {
    /// Layer norm over the last axis with PyTorch's eps of 1e-5.
    ///
    /// # Errors
    /// If gamma or beta is not `[last extent]`.
    #[track_caller]
    pub fn layer_norm(&mut self, x: Value, gamma: Value, beta: Value) -> Result<Value, GraphError> {
        self.one(LayerNorm { eps: 1e-5 }, &[x, gamma, beta])
    }
}
