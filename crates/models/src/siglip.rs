//! A vision tower in the manner of SigLIP (Zhai et al. 2023): patches and learned positions, pre-norm blocks with
//! biases and the tanh GELU, a last norm. There is no class token: every patch goes on. Parameters are named as
//! Hugging Face's `SiglipVisionModel` does.
//!
//! ```text
//! picture [B, S, S, 3] -> patches + positions -> blocks -> LayerNorm -> [B, (S/p)^2, width]
//! ```

use crate::nn::{Context, GroupedAttention, KvCache, grouped_attention, layer_norm, linear, patch_embedding};
use ocelli_ir::{GraphError, Init, Value};

/// Added to the variance in every norm.
const EPS: f64 = 1e-6;

/// Sizes of a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiglipConfig {
    /// Side of a patch, pixels.
    pub patch: usize,
    /// Width, a multiple of `heads`.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width inside the feed-forward part.
    pub inner: usize,
    /// Blocks.
    pub blocks: usize,
}

/// f32 `[B, S, S, 3] -> [B, (S/p)^2, width]`.
///
/// # Errors
/// If patches do not fill the picture.
#[track_caller]
pub fn tower(cx: &mut Context<'_>, c: &SiglipConfig, pictures: Value) -> Result<Value, GraphError> {
    let mut x = cx.scoped("embeddings", |cx| embeddings(cx, c, pictures))?;
    for i in 0..c.blocks {
        x = cx.scoped(format!("encoder.layers.{i}"), |cx| block(cx, c, x))?;
    }
    cx.scoped("post_layernorm", |cx| layer_norm(cx, x, c.width, EPS))
}

fn embeddings(cx: &mut Context<'_>, c: &SiglipConfig, pictures: Value) -> Result<Value, GraphError> {
    let x = cx.scoped("patch_embedding", |cx| patch_embedding(cx, pictures, c.patch, c.width))?;
    let patches = cx.g.shape(x)[1];
    let init = Init::Normal { std: (c.width as f64).sqrt().recip() };
    let positions = cx.scoped("position_embedding", |cx| cx.param("weight", &[patches, c.width], init))?;
    cx.g.add(x, positions)
}

fn block(cx: &mut Context<'_>, c: &SiglipConfig, x: Value) -> Result<Value, GraphError> {
    let attention = GroupedAttention {
        width: c.width,
        heads: c.heads,
        kv_heads: c.heads,
        causal: false,
        bias: true,
        out: "out_proj",
    };
    let normed = cx.scoped("layer_norm1", |cx| layer_norm(cx, x, c.width, EPS))?;
    let attend = |cx: &mut _| grouped_attention(cx, normed, &attention, None, &KvCache::None);
    let attended = cx.scoped("self_attn", attend)?;
    let x = cx.g.add(x, attended)?;
    let normed = cx.scoped("layer_norm2", |cx| layer_norm(cx, x, c.width, EPS))?;
    let fed = cx.scoped("mlp", |cx| {
        let h = cx.scoped("fc1", |cx| linear(cx, normed, c.width, c.inner, true))?;
        let h = cx.g.gelu_tanh(h)?;
        cx.scoped("fc2", |cx| linear(cx, h, c.inner, c.width, true))
    })?;
    cx.g.add(x, fed)
}
