//! `rms_norm`: each row divided by the root of its mean square, then scaled (Zhang and Sennrich 2019).

use super::common::{arity, float, narrow_rows, per_output, shaped};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::RmsNormGrad;
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// Inputs x `[.., C]`, gamma `[C]`. Outputs y like x, `gamma x / sqrt(mean(x^2) + eps)`, and the f32 factor
/// 1 / sqrt(mean(x^2) + eps), one per row, which the gradient reads.
#[derive(Clone, Debug, PartialEq)]
pub struct RmsNorm {
    /// Added to the mean square; 1e-5 or 1e-6 in published decoders.
    pub eps: f64,
}

impl OpDef for RmsNorm {
    const NAME: &'static str = "rms_norm";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 2)?;
        let x = inputs[0];
        float(x, "x")?;
        let (rows, cols) = x.shape.rows();
        shaped(inputs[1], &[cols], "gamma")?;
        Ok(vec![TensorType::f32(x.shape.clone()), TensorType::f32([rows])])
    }

    fn storage(&self, output: usize) -> Storage {
        if output == 0 { Storage::Stream } else { Storage::Wide }
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (x, gamma) = (inputs[0].as_real(), inputs[1].as_real());
        let (rows, cols) = inputs[0].shape.rows();
        let (n, eps) = (R::of(cols as f64), R::of(self.eps));
        let factor = |row: &[R]| (row.iter().map(|&x| x * x).sum::<R>() / n + eps).sqrt().recip();
        let factors: Vec<R> = x.chunks(cols.max(1)).map(factor).collect();
        let data = (0..x.len()).map(|i| x[i] * factors[i / cols] * gamma[i % cols]).collect();
        vec![Tensor::real(inputs[0].shape.clone(), data), Tensor::real([rows], factors)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let inputs = [cx.inputs[0], cx.inputs[1], cx.outputs[1], dy];
        Ok(cx.g.many(RmsNormGrad, &inputs)?.into_iter().map(Some).collect())
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(1, 3);
        let c = TensorType::f32([*shape.last().unwrap_or(&1)]);
        Sample::new(Self { eps: 1e-2 }, vec![(TensorType::f32(shape), Fill::Normal), (c, Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 4)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_rows(cut, inputs, output)
    }
}

impl Graph {
    /// RMS norm over the last axis.
    ///
    /// # Errors
    /// If gamma is not `[last extent]`.
    #[track_caller]
    pub fn rms_norm(&mut self, x: Value, gamma: Value, eps: f64) -> Result<Value, GraphError> {
        self.one(RmsNorm { eps }, &[x, gamma])
    }
}
