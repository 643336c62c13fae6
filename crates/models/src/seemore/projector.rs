//! From the vision tower to the decoder: an MLP with dropout behind it.

use super::SeemoreConfig;
use crate::nn::{Context, mlp};
use ocelli_ir::{GraphError, Value};

/// `[B, image_embed_dim] -> [B, n_embd]`; hidden width 4 x `image_embed_dim`.
pub(super) fn projector(
    cx: &mut Context<'_>,
    c: &SeemoreConfig,
    features: Value,
) -> Result<Value, GraphError> {
    let d = c.image_embed_dim;
    let y = cx.scoped("net", |cx| mlp(cx, features, d, 4 * d, c.n_embd))?;
    cx.dropout(y, c.dropout, "dropout")
}
