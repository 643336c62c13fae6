//! The sizes of a seemore model, and which of them are possible.

use crate::nn::Residual;
use std::fmt;

/// Sizes and dropout rates.
#[derive(Clone, Debug, PartialEq)]
pub struct SeemoreConfig {
    /// Side of the square picture, pixels.
    pub img_size: usize,
    /// Side of a patch, pixels; divides `img_size`.
    pub patch_size: usize,
    /// Width of the vision tower, a multiple of `n_head`.
    pub image_embed_dim: usize,
    /// Blocks of the vision tower.
    pub num_blks: usize,
    /// Width of the decoder, a multiple of `n_head`.
    pub n_embd: usize,
    /// Heads, in both towers.
    pub n_head: usize,
    /// Blocks of the decoder.
    pub n_layer: usize,
    /// Rows of the token table.
    pub vocab_size: usize,
    /// Rows of the position table: the picture and at most one fewer tokens.
    pub max_positions: usize,
    /// Dropout in decoder blocks and on the projector's output.
    pub dropout: f64,
    /// Dropout behind the vision tower's positions.
    pub emb_dropout: f64,
    /// Dropout in vision blocks: attention weights and projection.
    pub blk_dropout: f64,
    /// Form of the blocks.
    pub residual: Residual,
}

/// Sizes that no model can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError(pub String);

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SizeError {}

impl SeemoreConfig {
    /// Number of patches of a picture.
    pub fn patches(&self) -> usize {
        (self.img_size / self.patch_size).pow(2)
    }

    /// Checks that the sizes go together, before anything is built.
    ///
    /// # Errors
    /// Names both numbers that do not.
    pub fn check(&self) -> Result<(), SizeError> {
        let positive = [
            ("img_size", self.img_size),
            ("patch_size", self.patch_size),
            ("image_embed_dim", self.image_embed_dim),
            ("n_embd", self.n_embd),
            ("n_head", self.n_head),
            ("vocab_size", self.vocab_size),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, n)| *n == 0) {
            return Err(SizeError(format!("{name} is 0, it must be at least 1")));
        }
        for (whole, part, a, b) in [
            ("img_size", "patch_size", self.img_size, self.patch_size),
            ("image_embed_dim", "n_head", self.image_embed_dim, self.n_head),
            ("n_embd", "n_head", self.n_embd, self.n_head),
        ] {
            if a % b != 0 {
                return Err(SizeError(format!("{whole} {a} is not a multiple of {part} {b}")));
            }
        }
        if self.max_positions < 2 {
            return Err(SizeError(format!(
                "max_positions {} leaves no room for a token behind the picture",
                self.max_positions
            )));
        }
        Ok(())
    }
}
