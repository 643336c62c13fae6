//! The *seemore* captioner: a ViT reads a picture into one vector, an MLP turns it into a soft token, and a
//! causal character decoder continues from it. Parameter names are those of the published state dict.
//!
//! ```text
//! picture [B, S, S, 3] -> patches -> ViT -> LayerNorm(CLS) [B, D_v] -> MLP -> soft token [B, 1, D_t]
//! tokens [B, T] -> embedding, soft token in front, + positions -> causal blocks -> LayerNorm -> [B, T+1, V]
//! ```

mod config;
mod decoder;
mod projector;
mod vit;

pub use config::{SeemoreConfig, SizeError};

use crate::nn::{Context, KvCache};
use ocelli_ir::{GraphError, Value};

/// Features of pictures f32 `[B, S, S, 3]` (normalised): `[B, image_embed_dim]`.
///
/// # Errors
/// If the picture is not of the configured size.
pub fn image_features(cx: &mut Context<'_>, c: &SeemoreConfig, pictures: Value) -> Result<Value, GraphError> {
    cx.scoped("vision_encoder", |cx| vit::vit(cx, c, pictures))
}

/// Logits `[B, T + 1, vocab]` for pictures f32 `[B, S, S, 3]` and tokens u32 `[B, T]`; position 0 is the
/// picture's.
///
/// # Errors
/// If the shapes do not fit the configuration.
pub fn logits(
    cx: &mut Context<'_>,
    c: &SeemoreConfig,
    pictures: Value,
    tokens: Value,
) -> Result<Value, GraphError> {
    let features = image_features(cx, c, pictures)?;
    cx.scoped("decoder", |cx| decoder::full(cx, c, features, tokens, &KvCache::None))
}

/// Starts captions: logits as [`logits`], and the keys and values of all T + 1 positions kept in a cache with
/// `positions` places.
///
/// # Errors
/// If the shapes do not fit the configuration.
pub fn prefill(
    cx: &mut Context<'_>,
    c: &SeemoreConfig,
    pictures: Value,
    tokens: Value,
    positions: usize,
) -> Result<Value, GraphError> {
    let features = image_features(cx, c, pictures)?;
    let cache = KvCache::Prefill { positions };
    cx.scoped("decoder", |cx| decoder::full(cx, c, features, tokens, &cache))
}

/// Continues captions by one token each: token u32 `[B]` stands at position `at` (u32 `[]`; the picture has
/// position 0). Logits `[B, vocab]` of the token behind it.
///
/// # Errors
/// If the shapes do not fit the configuration.
pub fn decode(
    cx: &mut Context<'_>,
    c: &SeemoreConfig,
    token: Value,
    at: Value,
    positions: usize,
) -> Result<Value, GraphError> {
    cx.scoped("decoder", |cx| decoder::one(cx, c, token, at, positions))
}
