//! The causal character decoder behind a soft token, over whole captions or one token at a time.

use super::SeemoreConfig;
use super::projector::projector;
use crate::nn::{BlockConfig, Context, EPS, KvCache, SelfAttention, block, embedding, layer_norm, linear};
use ocelli_ir::ops::{Broadcast, Increment};
use ocelli_ir::{GraphError, Init, Value};

/// Features `[B, D_v]` and tokens u32 `[B, T]` to logits `[B, T + 1, vocab]`, or `[B, vocab]` of the rows `last`
/// (u32 `[B]`) of these.
pub(super) fn full(
    cx: &mut Context<'_>,
    c: &SeemoreConfig,
    features: Value,
    tokens: Value,
    last: Option<Value>,
    cache: &KvCache,
) -> Result<Value, GraphError> {
    let shape = cx.g.shape(tokens);
    let (b, t) = (shape[0], shape[1]);
    let soft = cx.scoped("image_projection", |cx| projector(cx, c, features))?;
    let soft = cx.g.reshape(soft, [b, 1, c.n_embd])?;
    let text = cx.scoped("token_embedding_table", |cx| embedding(cx, tokens, c.vocab_size, c.n_embd))?;
    let x = cx.g.concat(&[soft, text], 1)?;
    let table = position_table(cx, c)?;
    let positions = cx.g.slice(table, 0, 0, t + 1)?;
    let x = cx.g.add(x, positions)?;
    let mut x = blocks(cx, c, x, cache)?;
    if let Some(last) = last {
        let rows = cx.g.reshape(x, [b * (t + 1), c.n_embd])?;
        x = cx.g.gather_rows(rows, last)?;
    }
    head(cx, c, x)
}

/// Token u32 `[B]` at position `at` (u32 `[]`) to logits `[B, vocab]`.
pub(super) fn one(
    cx: &mut Context<'_>,
    c: &SeemoreConfig,
    token: Value,
    at: Value,
    positions: usize,
) -> Result<Value, GraphError> {
    let b = cx.g.shape(token)[0];
    let text = cx.scoped("token_embedding_table", |cx| embedding(cx, token, c.vocab_size, c.n_embd))?;
    let table = position_table(cx, c)?;
    let position = cx.g.gather_rows(table, at)?;
    let x = cx.g.add(text, position)?;
    let x = cx.g.reshape(x, [b, 1, c.n_embd])?;
    let next = cx.g.one(Increment, &[at])?;
    let valid = cx.g.one(Broadcast { shape: [b].into() }, &[next])?;
    let x = blocks(cx, c, x, &KvCache::Decode { positions, at, valid })?;
    let logits = head(cx, c, x)?;
    cx.g.reshape(logits, [b, c.vocab_size])
}

fn position_table(cx: &mut Context<'_>, c: &SeemoreConfig) -> Result<Value, GraphError> {
    let init = Init::Normal { std: 1.0 };
    cx.scoped("position_embedding_table", |cx| cx.param("weight", &[c.max_positions, c.n_embd], init))
}

/// `[B, T, n_embd] -> [B, T, n_embd]`.
fn blocks(cx: &mut Context<'_>, c: &SeemoreConfig, x: Value, cache: &KvCache) -> Result<Value, GraphError> {
    let attention = SelfAttention { width: c.n_embd, heads: c.n_head, causal: true, dropout: c.dropout };
    let config = BlockConfig { attention, residual: c.residual };
    let mut x = x;
    for i in 0..c.n_layer {
        x = cx.scoped(format!("blocks.{i}"), |cx| block(cx, x, &config, cache))?;
    }
    Ok(x)
}

/// Last norm and head: `[.., n_embd] -> [.., vocab]`.
fn head(cx: &mut Context<'_>, c: &SeemoreConfig, x: Value) -> Result<Value, GraphError> {
    let x = cx.scoped("ln_f", |cx| layer_norm(cx, x, c.n_embd, EPS))?;
    cx.scoped("lm_head", |cx| linear(cx, x, c.n_embd, c.vocab_size, true))
}
