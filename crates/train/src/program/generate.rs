//! Captioning programs: read pictures and a prompt once, then one token a run. They share the training state,
//! and keep keys and values in it (rule 11).

use super::Size;
use super::loss::{images, normalized};
use ocelli_ir::{Graph, TensorType};
use ocelli_models::Model;
use ocelli_models::nn::{Context, Mode};
use ocelli_passes::{CompileError, PassCx, Stage, pipeline};

/// Inputs `images` u8 `[B, S, S, 3]`, `tokens` u32 `[B, T]` (a prompt and padding) and `last` u32 `[B]` (for row b:
/// `b (T + 1) + n`, n the number of its tokens). Output `logits` `[B, vocab]`, of the token behind the prompt.
/// The cache of keys and values has room for `places`.
///
/// # Errors
/// If the sizes do not fit the model.
pub fn prefill(
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    size: Size,
    places: usize,
) -> Result<Graph, CompileError> {
    let mut g = Graph::new();
    let pictures = images(&mut g, model, size.batch, super::Pictures::Bytes);
    let tokens = g.input("tokens", TensorType::u32([size.batch, size.text]));
    let last = g.input("last", TensorType::u32([size.batch]));
    let mut build = Context::new(&mut g, cx.state, Mode::Eval);
    let pictures = normalized(build.g, pictures)?;
    let logits = model.prefill(&mut build, pictures, tokens, last, places)?;
    g.output("logits", logits);
    pipeline::run(Stage::Forward, "prefill", g, cx)
}

/// Inputs `token` u32 `[B]` and `at` u32 `[]`, the place of that token (the picture has place 0). Output `logits`
/// `[B, vocab]`, of the token behind it.
///
/// # Errors
/// If the sizes do not fit the model.
pub fn decode(
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    batch: usize,
    places: usize,
) -> Result<Graph, CompileError> {
    let mut g = Graph::new();
    let token = g.input("token", TensorType::u32([batch]));
    let at = g.input("at", TensorType::u32([]));
    let logits = model.decode(&mut Context::new(&mut g, cx.state, Mode::Eval), token, at, places)?;
    g.output("logits", logits);
    pipeline::run(Stage::Forward, "decode", g, cx)
}
