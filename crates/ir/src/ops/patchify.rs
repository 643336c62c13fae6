//! `patchify`: a picture as rows of patches, ready for one matrix product. There is no NCHW and no convolution.

use super::common::{arity, float, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::Unpatchify;
use crate::tensor::{Real, Tensor};
use crate::{TensorType, View};

/// Input `[B, S, S, C]`, output `[B, (S/p)^2, C p p]`: patches row by row; within a patch the order is channel,
/// row, column, that of a PyTorch convolution weight `[out, C, p, p]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Patchify {
    /// Side of a patch, in pixels.
    pub patch: usize,
}

impl Patchify {
    /// The input `[B, S, S, C]` seen in the output's order, as `[B, S/p, S/p, C, p, p]`.
    pub fn view(&self, input: &View) -> View {
        let (p, s, st) = (self.patch, &input.shape, &input.strides);
        View {
            offset: input.offset,
            shape: [s[0], s[1] / p, s[2] / p, s[3], p, p].into(),
            strides: vec![st[0], p * st[1], p * st[2], st[3], st[1], st[2]],
        }
    }
}

impl OpDef for Patchify {
    const NAME: &'static str = "patchify";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        float(inputs[0], "the picture")?;
        let (p, ty) = (self.patch, inputs[0]);
        match ty.shape[..] {
            [b, h, w, c] if p > 0 && h % p == 0 && w % p == 0 => {
                Ok(vec![TensorType::new(ty.dtype, [b, (h / p) * (w / p), c * p * p])])
            }
            _ => Err(format!("pictures [B, H, W, C] with sides divisible by {p} expected, found {ty}")),
        }
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let patches = inputs[0].gather(&self.view(&View::contiguous(inputs[0].shape.clone())));
        let s = patches.shape.clone();
        vec![patches.reshaped([s[0], s[1] * s[2], s[3] * s[4] * s[5]])]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let picture = cx.shape(0).into();
        Ok(vec![Some(cx.g.one(Unpatchify { patch: self.patch, picture }, &[dy])?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let patch = g.dim(1, 4);
        let shape = [g.dim(1, 3), patch * g.dim(1, 3), patch * g.dim(1, 3), g.dim(1, 3)];
        Sample::new(Self { patch }, vec![(TensorType::f32(shape), Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 0)
    }
}
