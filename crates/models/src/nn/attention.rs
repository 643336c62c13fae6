//! Multi-head self-attention with one packed projection, in training, prefill and decoding.

use super::{Context, Mode, linear};
use ocelli_ir::ops::{Attention, Split, UpdateSlice};
use ocelli_ir::{DType, GraphError, Init, Slot, SlotId, SlotKind, TensorType, Value};

/// Shape of a self-attention.
#[derive(Clone, Copy, Debug)]
pub struct SelfAttention {
    /// Width of the residual stream, a multiple of `heads`.
    pub width: usize,
    /// Number of heads.
    pub heads: usize,
    /// Position i sees positions up to i.
    pub causal: bool,
    /// Dropout on the weights and on the projection.
    pub dropout: f64,
}

/// How an attention uses its cache of keys and values, two state slots `[B, positions, heads, width/heads]` at
/// the module's path (rule 11).
#[derive(Clone, Copy, Debug)]
pub enum KvCache {
    /// No cache: training and evaluation.
    None,
    /// Writes the T positions it sees to places 0..T, and attends among them.
    Prefill {
        /// Places in the cache.
        positions: usize,
    },
    /// Writes its one position to place `at` and attends to all places up to it.
    Decode {
        /// Places in the cache.
        positions: usize,
        /// u32 `[]`: the place.
        at: Value,
        /// u32 `[B]`: `at + 1` for each row, the number of places that count.
        valid: Value,
    },
}

/// `[B, T, width] -> [B, T, width]`; parameters `wqkv.weight` `[3 width, width]` (no bias; rows q, k, v, each by
/// head), `proj.weight` `[width, width]`, `proj.bias`.
///
/// # Errors
/// If the shapes do not fit.
#[track_caller]
pub fn self_attention(
    cx: &mut Context<'_>,
    x: Value,
    c: &SelfAttention,
    cache: &KvCache,
) -> Result<Value, GraphError> {
    let shape = cx.g.shape(x);
    let (b, t, d) = (shape[0], shape[1], c.width / c.heads);
    let qkv = cx.scoped("wqkv", |cx| linear(cx, x, c.width, 3 * c.width, false))?;
    let packed = cx.g.reshape(qkv, [b, t, 3, c.heads, d])?;
    let parts = cx.g.many(Split { axis: 2, parts: 3 }, &[packed])?;
    let mut heads = Vec::with_capacity(3);
    for part in parts {
        heads.push(cx.g.reshape(part, [b, t, c.heads, d])?);
    }
    let scale = (d as f64).sqrt().recip();
    let (k, v, lens) = cached(cx, heads[1], heads[2], cache)?;
    let dropout = cx.dropout_at(c.dropout, "weights");
    // A decoded position sees every valid key: the cache holds no later one.
    let causal = c.causal && !matches!(cache, KvCache::Decode { .. });
    let op = Attention { causal, scale, kv_len: lens.is_some(), dropout };
    let mut inputs = vec![heads[0], k, v];
    inputs.extend(lens);
    if let (Some(_), Mode::Train(keys)) = (dropout, cx.mode) {
        inputs.extend([keys.seed, keys.step, keys.samples]);
    }
    let o = cx.g.one(op, &inputs)?;
    let o = cx.g.reshape(o, [b, t, c.width])?;
    let y = cx.scoped("proj", |cx| linear(cx, o, c.width, c.width, true))?;
    cx.dropout(y, c.dropout, "proj")
}

/// Keys and values to attend to, and their valid lengths, after the cache has been brought up to date.
pub(super) fn cached(
    cx: &mut Context<'_>,
    k: Value,
    v: Value,
    cache: &KvCache,
) -> Result<(Value, Value, Option<Value>), GraphError> {
    let (positions, at, valid) = match *cache {
        KvCache::None => return Ok((k, v, None)),
        KvCache::Prefill { positions } => (positions, cx.g.constant(0.0, DType::U32), None),
        KvCache::Decode { positions, at, valid } => (positions, at, Some(valid)),
    };
    let mut updated = [k, v];
    for (name, value) in ["k_cache", "v_cache"].into_iter().zip(&mut updated) {
        let slot = cache_slot(cx, name, *value, positions)?;
        let old = cx.g.read(cx.state, slot);
        let new = cx.g.one(UpdateSlice { axis: 1 }, &[old, *value, at])?;
        cx.g.write(cx.state, slot, new)?;
        *value = new;
    }
    // While prefilling, the positions at hand are all there is to attend to.
    Ok(if valid.is_some() { (updated[0], updated[1], valid) } else { (k, v, None) })
}

fn cache_slot(cx: &mut Context<'_>, name: &str, like: Value, positions: usize) -> Result<SlotId, GraphError> {
    let mut shape = cx.g.shape(like);
    shape[1] = positions;
    let name = format!("cache[{}].{}.{name}", shape[0], cx.g.scope());
    let slot = Slot { name, ty: TensorType::f32(shape), kind: SlotKind::Cache, init: Init::Zeros };
    cx.state.declare(slot).map_err(|m| cx.g.error("cache", m))
}
