//! A decoder in the manner of Llama (Touvron et al. 2023) and SmolLM: pre-norm blocks with RMS norm, grouped queries,
//! rotary positions and SwiGLU, no biases, a last norm. Parameters are named as Hugging Face's `LlamaModel` does.
//!
//! ```text
//! [B, T, width] -> blocks -> RMSNorm -> [B, T, width]
//! ```

use crate::nn::{Angles, Context, GroupedAttention, KvCache, grouped_attention, linear, rms_norm};
use ocelli_ir::{GraphError, Value};

/// Added to the mean square in every norm.
const EPS: f64 = 1e-5;

/// Sizes of a decoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlamaConfig {
    /// Width, a multiple of `heads`; `width / heads` is even.
    pub width: usize,
    /// Heads of the queries, a multiple of `kv_heads`.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Width inside the feed-forward part.
    pub inner: usize,
    /// Blocks.
    pub blocks: usize,
    /// Base of the wavelengths of the rotary positions.
    pub theta: f64,
}

/// `[B, T, width] -> [B, T, width]`, for the T positions, u32 `[T]` or `[B, T]`.
///
/// # Errors
/// If the shapes do not fit.
#[track_caller]
pub fn decoder(
    cx: &mut Context<'_>,
    c: &LlamaConfig,
    x: Value,
    positions: Value,
    cache: &KvCache,
) -> Result<Value, GraphError> {
    let mut x = x;
    for i in 0..c.blocks {
        x = cx.scoped(format!("layers.{i}"), |cx| block(cx, c, x, positions, cache))?;
    }
    cx.scoped("norm", |cx| rms_norm(cx, x, c.width, EPS))
}

fn block(
    cx: &mut Context<'_>,
    c: &LlamaConfig,
    x: Value,
    positions: Value,
    cache: &KvCache,
) -> Result<Value, GraphError> {
    let attention = GroupedAttention {
        width: c.width,
        heads: c.heads,
        kv_heads: c.kv_heads,
        causal: true,
        bias: false,
        out: "o_proj",
    };
    let angles = Some(Angles { theta: c.theta, positions });
    let normed = cx.scoped("input_layernorm", |cx| rms_norm(cx, x, c.width, EPS))?;
    let attended = cx.scoped("self_attn", |cx| grouped_attention(cx, normed, &attention, angles, cache))?;
    let x = cx.g.add(x, attended)?;
    let normed = cx.scoped("post_attention_layernorm", |cx| rms_norm(cx, x, c.width, EPS))?;
    let fed = cx.scoped("mlp", |cx| {
        let gate = cx.scoped("gate_proj", |cx| linear(cx, normed, c.width, c.inner, false))?;
        let up = cx.scoped("up_proj", |cx| linear(cx, normed, c.width, c.inner, false))?;
        let h = cx.g.swiglu(gate, up)?;
        cx.scoped("down_proj", |cx| linear(cx, h, c.inner, c.width, false))
    })?;
    cx.g.add(x, fed)
}
