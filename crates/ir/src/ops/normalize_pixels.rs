//! `normalize_pixels`: bytes to floats with mean and spread per channel. Runs on the device: pictures cross
//! the bus as bytes.

use super::common::{arity, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Data, Real, Tensor};
use crate::{DType, TensorType};

/// Input u8 `[.., 3]`, output f32 `[.., 3]`: `(x / 255 - mean[c]) / std[c]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalizePixels {
    /// Mean of each channel, red first, on the scale 0 to 1.
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
}

impl NormalizePixels {
    /// The usual statistics of ImageNet, which the published recipe uses.
    pub const IMAGENET: Self = Self { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
}

impl OpDef for NormalizePixels {
    const NAME: &'static str = "normalize_pixels";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        if inputs[0].dtype != DType::U8 || inputs[0].shape.last() != Some(&3) {
            return Err(format!("takes u8 pixels [.., 3], found {}", inputs[0]));
        }
        Ok(vec![TensorType::f32(inputs[0].shape.clone())])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Stream
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let Data::U8(x) = &inputs[0].data else { return vec![] };
        let of = |v: f32| R::of(f64::from(v));
        let norm = |(i, &x): (usize, &u8)| (R::of(f64::from(x)) / R::of(255.0) - of(self.mean[i % 3])) / of(self.std[i % 3]);
        let data = x.iter().enumerate().map(norm).collect();
        vec![Tensor { shape: inputs[0].shape.clone(), data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("its input are bytes")
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = [g.shape(1, 3), vec![3]].concat();
        Sample::no_gradient(Self::IMAGENET, vec![(TensorType::new(DType::U8, shape), Fill::Below(256))])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 2)
    }
}
