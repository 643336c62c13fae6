//! Models, written once, forward, as plain Rust against a graph builder. Each folder is a model's diagram, or that of
//! a part of one; [`nn`] holds the layers that models share. What programs need of a model is its [`Model`].
pub mod llama;
pub mod nn;
pub mod seemore;
mod shapes;
pub mod siglip;
pub mod smol;

pub use shapes::{Shapes, SizeError, Sizes};

use nn::Context;
use ocelli_ir::{Graph, GraphError, Value};
use std::fmt::Debug;

/// What a model says of the next token, at places `[..]`.
#[derive(Clone, Copy, Debug)]
pub enum Scores {
    /// Logits `[.., vocab]`.
    Logits(Value),
    /// What the logits are the product of, without bias: a loss can be had of it without them.
    Product {
        /// `[.., C]`.
        hidden: Value,
        /// `[vocab, C]`.
        weight: Value,
    },
}

impl Scores {
    /// The logits `[.., vocab]`.
    ///
    /// # Errors
    /// If the product's shapes do not fit.
    pub fn logits(self, g: &mut Graph) -> Result<Value, GraphError> {
        match self {
            Self::Logits(logits) => Ok(logits),
            Self::Product { hidden, weight } => g.linear(hidden, weight, None),
        }
    }
}

/// A captioner: it reads a picture and continues from it, token by token.
///
/// However many positions the picture takes in the model, programs see one place for it: place 0, whose scores are
/// those of the first token. Token `i` of a text stands at place `i + 1`.
pub trait Model: Debug + Send + Sync {
    /// Side of the square picture, in pixels.
    fn picture_side(&self) -> usize;

    /// Rows of the token table.
    fn vocab_size(&self) -> usize;

    /// Places, the picture's included: the longest text is one less.
    fn max_places(&self) -> usize;

    /// Checks that the sizes go together, before anything is built.
    ///
    /// # Errors
    /// Names both numbers that do not.
    fn check(&self) -> Result<(), SizeError>;

    /// The sizes that the shapes of parameters tell, whoever wrote the file: each by the name of its setting, and
    /// none where names or shapes are not this model's.
    fn told(&self, shapes: &Shapes<'_>) -> Sizes;

    /// Scores `[B, T + 1]` for pictures f32 `[B, S, S, 3]` (normalised) and tokens u32 `[B, T]`.
    ///
    /// # Errors
    /// If the shapes do not fit the model.
    fn scores(&self, cx: &mut Context<'_>, pictures: Value, tokens: Value) -> Result<Scores, GraphError>;

    /// The same as logits `[B, T + 1, vocab]`.
    ///
    /// # Errors
    /// If the shapes do not fit the model.
    fn logits(&self, cx: &mut Context<'_>, pictures: Value, tokens: Value) -> Result<Value, GraphError> {
        self.scores(cx, pictures, tokens)?.logits(cx.g)
    }

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
