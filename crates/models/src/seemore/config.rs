//! The sizes of a seemore model, and which of them are possible.

use crate::nn::Residual;
use crate::shapes::{Shapes, SizeError, Sizes, known};

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

impl SeemoreConfig {
    /// Number of patches of a picture.
    pub fn patches(&self) -> usize {
        (self.img_size / self.patch_size).pow(2)
    }

    /// See [`crate::Model::check`].
    pub(super) fn check_sizes(&self) -> Result<(), SizeError> {
        let [img, patch] = [("img_size", self.img_size), ("patch_size", self.patch_size)];
        let [vision, text] = [("image_embed_dim", self.image_embed_dim), ("n_embd", self.n_embd)];
        let heads = ("n_head", self.n_head);
        SizeError::unless_positive(&[img, patch, vision, text, heads, ("vocab_size", self.vocab_size)])?;
        SizeError::unless_multiples(&[[img, patch], [vision, heads], [text, heads]])?;
        SizeError::unless_room(self.max_positions)
    }

    /// See [`crate::Model::told`].
    pub(super) fn told_sizes(shapes: &Shapes<'_>) -> Sizes {
        let patch = shapes.extent("vision_encoder.patch_embedding.conv.weight", 2);
        let patches = shapes.extent("vision_encoder.pos_embedding", 1).map(|n| n.saturating_sub(1));
        known([
            ("image_embed_dim", shapes.extent("vision_encoder.cls_token", 2)),
            ("patch_size", patch),
            ("img_size", Shapes::side(patches, patch)),
            ("vocab_size", shapes.extent("decoder.token_embedding_table.weight", 0)),
            ("n_embd", shapes.extent("decoder.token_embedding_table.weight", 1)),
            ("max_positions", shapes.extent("decoder.position_embedding_table.weight", 0)),
            ("num_blks", shapes.blocks("vision_encoder.blocks.")),
            ("n_layer", shapes.blocks("decoder.blocks.")),
        ])
    }
}
