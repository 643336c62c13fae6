//! `layer_norm_grad`: the gradients of a layer norm.

use super::common::{arity, exact, float, per_output, shaped};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Data, Real, Tensor};

/// Inputs x `[.., C]`, gamma `[C]`, mean and rstd (one f32 per row), dy like x. Outputs dx like x, dgamma and
/// dbeta `[C]`.
///
/// With h = (x - mean) rstd and t = dy gamma: dx = rstd (t - mean(t) - h mean(t h)); dgamma = sum dy h;
/// dbeta = sum dy, sums over rows.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNormGrad;

impl OpDef for LayerNormGrad {
    const NAME: &'static str = "layer_norm_grad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 5)?;
        let x = inputs[0];
        float(x, "x")?;
        let (rows, cols) = x.shape.rows();
        let c = TensorType::f32([cols]);
        shaped(inputs[1], &[cols], "gamma")?;
        exact(inputs[2], &TensorType::f32([rows]), "mean")?;
        exact(inputs[3], &TensorType::f32([rows]), "rstd")?;
        shaped(inputs[4], &x.shape, "dy")?;
        Ok(vec![TensorType::f32(x.shape.clone()), c.clone(), c])
    }

    fn storage(&self, output: usize) -> Storage {
        if output == 0 { Storage::Stream } else { Storage::Wide }
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let [x, gamma, mean, rstd, dy] = [0, 1, 2, 3, 4].map(|i| inputs[i].as_real());
        let (rows, cols) = inputs[0].shape.rows();
        let n = R::of(cols as f64);
        let mut dx = vec![R::zero(); x.len()];
        let (mut dgamma, mut dbeta) = (vec![R::zero(); cols], vec![R::zero(); cols]);
        for r in 0..rows {
            let at = |c: usize| r * cols + c;
            let h = |c: usize| (x[at(c)] - mean[r]) * rstd[r];
            let t = |c: usize| dy[at(c)] * gamma[c];
            let mean_t = (0..cols).map(t).sum::<R>() / n;
            let mean_th = (0..cols).map(|c| t(c) * h(c)).sum::<R>() / n;
            for c in 0..cols {
                dx[at(c)] = rstd[r] * (t(c) - mean_t - h(c) * mean_th);
                dgamma[c] += dy[at(c)] * h(c);
                dbeta[c] += dy[at(c)];
            }
        }
        let dx = Tensor { shape: inputs[0].shape.clone(), data: Data::Real(dx) };
        vec![dx, Tensor::real([cols], dgamma), Tensor::real([cols], dbeta)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("second derivatives are not offered")
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(1, 3);
        let x = TensorType::f32(shape);
        let (rows, cols) = x.shape.rows();
        let (row, col) = (TensorType::f32([rows]), TensorType::f32([cols]));
        let inputs = vec![
            (x.clone(), Fill::Normal),
            (col, Fill::Normal),
            (row.clone(), Fill::Normal),
            (row, Fill::Range(0.5, 2.0)),
            (x, Fill::Normal),
        ];
        Sample::no_gradient(Self, inputs)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 14)
    }
}
