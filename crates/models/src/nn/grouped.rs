//! Self-attention whose queries, keys and values have projections of their own: with fewer heads for keys than for
//! queries, and with rotary positions, if asked.

use super::attention::cached;
use super::{Context, KvCache, linear};
use ocelli_ir::ops::Attention;
use ocelli_ir::{GraphError, Value};

/// Shape of an attention.
#[derive(Clone, Copy, Debug)]
pub struct GroupedAttention {
    /// Width of the residual stream, a multiple of `heads`.
    pub width: usize,
    /// Heads of the queries, a multiple of `kv_heads`.
    pub heads: usize,
    /// Heads of keys and values: each is read by `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Position i sees positions up to i.
    pub causal: bool,
    /// The projections have a bias.
    pub bias: bool,
    /// Name of the last projection; the others are `q_proj`, `k_proj`, `v_proj`.
    pub out: &'static str,
}

/// Rotary positions.
#[derive(Clone, Copy, Debug)]
pub struct Angles {
    /// Base of the wavelengths.
    pub theta: f64,
    /// u32 `[T]` or `[B, T]`.
    pub positions: Value,
}

/// `[B, T, width] -> [B, T, width]`.
///
/// # Errors
/// If the shapes do not fit.
#[track_caller]
pub fn grouped_attention(
    cx: &mut Context<'_>,
    x: Value,
    c: &GroupedAttention,
    angles: Option<Angles>,
    cache: &KvCache,
) -> Result<Value, GraphError> {
    let (shape, d) = (cx.g.shape(x), c.width / c.heads);
    let mut q = heads(cx, x, c, "q_proj", c.heads)?;
    let mut k = heads(cx, x, c, "k_proj", c.kv_heads)?;
    let v = heads(cx, x, c, "v_proj", c.kv_heads)?;
    if let Some(Angles { theta, positions }) = angles {
        // Keys go to the cache turned: they never turn again.
        q = cx.g.rope(q, positions, theta)?;
        k = cx.g.rope(k, positions, theta)?;
    }
    let (k, v, lens) = cached(cx, k, v, cache)?;
    // A decoded position sees every valid key: the cache holds no later one.
    let causal = c.causal && !matches!(cache, KvCache::Decode { .. });
    let op = Attention { causal, scale: (d as f64).sqrt().recip(), kv_len: lens.is_some(), dropout: None };
    let inputs: Vec<Value> = [q, k, v].into_iter().chain(lens).collect();
    let o = cx.g.one(op, &inputs)?;
    let o = cx.g.reshape(o, shape)?;
    cx.scoped(c.out, |cx| linear(cx, o, c.width, c.width, c.bias))
}

/// A projection as heads: `[B, T, width] -> [B, T, heads, D]`.
fn heads(
    cx: &mut Context<'_>,
    x: Value,
    c: &GroupedAttention,
    name: &str,
    heads: usize,
) -> Result<Value, GraphError> {
    let (shape, d) = (cx.g.shape(x), c.width / c.heads);
    let y = cx.scoped(name, |cx| linear(cx, x, c.width, heads * d, c.bias))?;
    cx.g.reshape(y, [shape[0], shape[1], heads, d])
}
