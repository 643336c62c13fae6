//! `rms_norm_grad`: the gradients of an RMS norm.

use super::common::{arity, exact, float, per_output, shaped};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};

/// Inputs x `[.., C]`, gamma `[C]`, factor (one f32 per row), dy like x. Outputs dx like x and dgamma `[C]`.
///
/// With h = x factor and t = dy gamma: dx = factor (t - h mean(t h)); dgamma = sum over rows of dy h.
#[derive(Clone, Debug, PartialEq)]
pub struct RmsNormGrad;

impl OpDef for RmsNormGrad {
    const NAME: &'static str = "rms_norm_grad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 4)?;
        let x = inputs[0];
        float(x, "x")?;
        let (rows, cols) = x.shape.rows();
        let c = TensorType::f32([cols]);
        shaped(inputs[1], &[cols], "gamma")?;
        exact(inputs[2], &TensorType::f32([rows]), "factor")?;
        shaped(inputs[3], &x.shape, "dy")?;
        Ok(vec![TensorType::f32(x.shape.clone()), c])
    }

    fn storage(&self, output: usize) -> Storage {
        if output == 0 { Storage::Stream } else { Storage::Wide }
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let [x, gamma, factor, dy] = [0, 1, 2, 3].map(|i| inputs[i].as_real());
        let (_, cols) = inputs[0].shape.rows();
        let mut dx = vec![R::zero(); x.len()];
        let mut dgamma = vec![R::zero(); cols];
        for (r, &factor) in factor.iter().enumerate() {
            let at = |c: usize| r * cols + c;
            let h = |c: usize| x[at(c)] * factor;
            let t = |c: usize| dy[at(c)] * gamma[c];
            let mean = (0..cols).map(|c| t(c) * h(c)).sum::<R>() / R::of(cols as f64);
            for c in 0..cols {
                dx[at(c)] = factor * (t(c) - h(c) * mean);
                dgamma[c] += dy[at(c)] * h(c);
            }
        }
        vec![Tensor::real(inputs[0].shape.clone(), dx), Tensor::real([cols], dgamma)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("second derivatives are not offered")
    }

    fn sample(g: &mut Gen) -> Sample {
        let x = TensorType::f32(g.shape(1, 3));
        let (rows, cols) = x.shape.rows();
        let inputs = vec![
            (x.clone(), Fill::Normal),
            (TensorType::f32([cols]), Fill::Normal),
            (TensorType::f32([rows]), Fill::Range(0.5, 2.0)),
            (x, Fill::Normal),
        ];
        Sample::no_gradient(Self, inputs)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 10)
    }
}
