//! A transformer block, in the published form and in the standard one.

use super::{Context, EPS, KvCache, SelfAttention, layer_norm, mlp, self_attention};
use ocelli_ir::{GraphError, Value};

/// Where the second residual connection starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// `x = x + attn(ln1(x)); x = ln2(x); x = x + ffn(x)`: the published model, whose residual stream is
    /// normalised in every block.
    Published,
    /// `x = x + attn(ln1(x)); x = x + ffn(ln2(x))`: the standard pre-norm block (Xiong et al. 2020).
    PreNorm,
}

/// Shape of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockConfig {
    /// Its attention.
    pub attention: SelfAttention,
    /// Its residual connections.
    pub residual: Residual,
}

/// `[B, T, width] -> [B, T, width]`; modules `ln1`, `attn`, `ln2`, `ffn` (hidden width 4 x, exact GELU).
///
/// # Errors
/// If the shapes do not fit.
#[track_caller]
pub fn block(cx: &mut Context<'_>, x: Value, c: &BlockConfig, cache: &KvCache) -> Result<Value, GraphError> {
    let width = c.attention.width;
    let normed = cx.scoped("ln1", |cx| layer_norm(cx, x, width, EPS))?;
    let attended = cx.scoped("attn", |cx| self_attention(cx, normed, &c.attention, cache))?;
    let x = cx.g.add(x, attended)?;
    let normed = cx.scoped("ln2", |cx| layer_norm(cx, x, width, EPS))?;
    let fed = cx.scoped("ffn", |cx| mlp(cx, normed, width, 4 * width, width))?;
    let residual = if c.residual == Residual::Published { normed } else { x };
    cx.g.add(residual, fed)
}
