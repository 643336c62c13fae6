//! From the vision tower to the decoder: square groups of neighbouring patches become one token each.

use super::SmolConfig;
use crate::nn::{Context, linear};
use ocelli_ir::{GraphError, Value};

/// `[B, P, D_v] -> [B, P / r^2, D_t]` with r the side of a group: its patches side by side, row by row, then one
/// linear layer without bias.
pub(super) fn projector(cx: &mut Context<'_>, c: &SmolConfig, x: Value) -> Result<Value, GraphError> {
    let (b, d, r) = (cx.g.shape(x)[0], c.image_embed_dim, c.pixel_shuffle);
    let side = c.img_size / c.patch_size / r;
    let x = cx.g.reshape(x, [b, side, r, side, r, d])?;
    let x = cx.g.permute(x, vec![0, 1, 3, 2, 4, 5])?;
    let x = cx.g.reshape(x, [b, side * side, r * r * d])?;
    cx.scoped("modality_projection.proj", |cx| linear(cx, x, r * r * d, c.n_embd, false))
}
