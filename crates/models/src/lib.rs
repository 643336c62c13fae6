//! Models, written once, forward, as plain Rust against a graph builder. Each folder is a model's diagram;
//! [`nn`] holds the layers that models share. What programs need of a model is its [`Model`].
pub mod nn;
pub mod seemore;

use nn::Context;
use ocelli_ir::{GraphError, Value};
use std::fmt::Debug;

/// A captioner: it reads a picture and continues from it, token by token.
///
/// However many positions the picture takes in the model, programs see one place for it: place 0, whose logits are
/// those of the first token. Token `i` of a text stands at place `i + 1`.
pub trait Model: Debug + Send + Sync {
    /// Side of the square picture, in pixels.
    fn picture_side(&self) -> usize;

    /// Rows of the token table.
    fn vocab_size(&self) -> usize;

    /// Places, the picture's included: the longest text is one less.
    fn max_places(&self) -> usize;

    /// Logits `[B, T + 1, vocab]` for pictures f32 `[B, S, S, 3]` (normalised) and tokens u32 `[B, T]`.
    ///
    /// # Errors
    /// If the shapes do not fit the model.
    fn logits(&self, cx: &mut Context<'_>, pictures: Value, tokens: Value) -> Result<Value, GraphError>;

    /// Starts captions: the logits `[B, vocab]` behind place `last` (u32 `[B]`: for row b, `b (T + 1)` and the place)
    /// of each row; the keys and values of all places are kept in a cache with room for `places` of them.
    ///
    /// # Errors
    /// If the shapes do not fit the model.
    fn prefill(
        &self,
        cx: &mut Context<'_>,
        pictures: Value,
        tokens: Value,
        last: Value,
        places: usize,
    ) -> Result<Value, GraphError>;

    /// Continues captions by one token each: token u32 `[B]` stands at place `at`, u32 `[]`. Logits `[B, vocab]` of
    /// the token behind it.
    ///
    /// # Errors
    /// If the shapes do not fit the model.
    fn decode(
        &self,
        cx: &mut Context<'_>,
        token: Value,
        at: Value,
        places: usize,
    ) -> Result<Value, GraphError>;
}
