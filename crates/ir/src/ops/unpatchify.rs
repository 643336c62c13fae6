//! `unpatchify`: patches back into a picture; the inverse and transpose of `patchify`.

use super::common::{arity, exact, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::Patchify;
use crate::tensor::{Real, Tensor};
use crate::{Shape, TensorType, View};

/// Input `[B, (H/p)(W/p), C p p]`, output `[B, H, W, C]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpatchify {
    /// Side of a patch, in pixels.
    pub patch: usize,
    /// Shape of the picture.
    pub picture: Shape,
}

impl OpDef for Unpatchify {
    const NAME: &'static str = "unpatchify";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        let picture = TensorType::new(inputs[0].dtype, self.picture.clone());
        let patches = Patchify { patch: self.patch }.infer(&[&picture])?;
        exact(inputs[0], &patches[0], "the patches")?;
        Ok(vec![picture])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let mut data = vec![R::zero(); self.picture.numel()];
        let mut from = inputs[0].as_real().iter();
        let view = Patchify { patch: self.patch }.view(&View::contiguous(self.picture.clone()));
        view.for_each(|i| data[i] = from.next().copied().unwrap_or_default());
        vec![Tensor::real(self.picture.clone(), data)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        Ok(vec![Some(cx.g.one(Patchify { patch: self.patch }, &[dy])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let (patch, b, h, w, c) = (g.dim(1, 4), g.dim(1, 3), g.dim(1, 3), g.dim(1, 3), g.dim(1, 3));
        let picture = [b, h * patch, w * patch, c].into();
        let patches = TensorType::f32([b, h * w, c * patch * patch]);
        Sample::new(Self { patch, picture }, vec![(patches, Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 0)
    }
}
