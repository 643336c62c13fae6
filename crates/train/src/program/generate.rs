//! Captioning programs: read pictures and a prompt once, then one token a run. They share the training state,
//! and keep keys and values in it (rule 11).

use super::Size;
use super::loss::{images, normalized};
use ocelli_ir::ops::GatherRows;
use ocelli_ir::{Graph, GraphError, StateSpec, TensorType};
use ocelli_models::nn::{Context, Mode};
use ocelli_models::seemore::{self, SeemoreConfig};

/// Inputs `images` u8 `[B, S, S, 3]`, `tokens` u32 `[B, T]` (a prompt and padding) and `last` u32 `[B]` (for row b:
/// `b (T + 1) + n`, n the number of its tokens). Output `logits` `[B, vocab]`, of the token behind the prompt.
/// The cache of keys and values has `positions` places.
///
/// # Errors
/// If the sizes do not fit the model.
pub fn prefill(
    state: &mut StateSpec,
    model: &SeemoreConfig,
    size: Size,
    positions: usize,
) -> Result<Graph, GraphError> {
    let mut g = Graph::new();
    let pictures = images(&mut g, model, size.batch, super::Pictures::Bytes);
    let tokens = g.input("tokens", TensorType::u32([size.batch, size.text]));
    let last = g.input("last", TensorType::u32([size.batch]));
    let mut cx = Context::new(&mut g, state, Mode::Eval);
    let pictures = normalized(cx.g, pictures)?;
    let logits = seemore::prefill(&mut cx, model, pictures, tokens, positions)?;
    let rows = g.reshape(logits, [size.batch * (size.text + 1), model.vocab_size])?;
    let next = g.one(GatherRows, &[rows, last])?;
    g.output("logits", next);
    Ok(g)
}

/// Inputs `token` u32 `[B]` and `at` u32 `[]`, the position of that token (the picture has position 0). Output
/// `logits` `[B, vocab]`, of the token behind it.
///
/// # Errors
/// If the sizes do not fit the model.
pub fn decode(
    state: &mut StateSpec,
    model: &SeemoreConfig,
    batch: usize,
    positions: usize,
) -> Result<Graph, GraphError> {
    let mut g = Graph::new();
    let token = g.input("token", TensorType::u32([batch]));
    let at = g.input("at", TensorType::u32([]));
    let mut cx = Context::new(&mut g, state, Mode::Eval);
    let logits = seemore::decode(&mut cx, model, token, at, positions)?;
    g.output("logits", logits);
    Ok(g)
}
