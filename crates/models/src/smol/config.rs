//! The sizes of a smol model, which of them are possible, and what shapes tell of them.

use crate::llama::LlamaConfig;
use crate::shapes::{Shapes, SizeError, Sizes, known};
use crate::siglip::SiglipConfig;

/// Sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SmolConfig {
    /// Side of the square picture, pixels.
    pub img_size: usize,
    /// Side of a patch, pixels; divides `img_size`.
    pub patch_size: usize,
    /// Width of the vision tower, a multiple of `image_n_head`.
    pub image_embed_dim: usize,
    /// Heads of the vision tower.
    pub image_n_head: usize,
    /// Width inside the vision tower's feed-forward parts.
    pub image_inner: usize,
    /// Blocks of the vision tower.
    pub num_blks: usize,
    /// Patches along a side of a group that becomes one token; divides `img_size / patch_size`.
    pub pixel_shuffle: usize,
    /// Width of the decoder, a multiple of `n_head`; `n_embd / n_head` is even.
    pub n_embd: usize,
    /// Heads of the decoder's queries, a multiple of `n_kv_head`.
    pub n_head: usize,
    /// Heads of its keys and values.
    pub n_kv_head: usize,
    /// Width inside the decoder's feed-forward parts.
    pub n_inner: usize,
    /// Blocks of the decoder.
    pub n_layer: usize,
    /// Rows of the token table.
    pub vocab_size: usize,
    /// The picture and the tokens of the longest text, counting the picture as one.
    pub max_positions: usize,
    /// Base of the wavelengths of the rotary positions.
    pub rope_theta: f64,
    /// The token table is also the head.
    pub tie_weights: bool,
}

/// The width of keys and values, by the keys that it follows from.
const KEY_WIDTH: &str = "n_embd / n_head * n_kv_head";

impl SmolConfig {
    /// Tokens that a picture becomes.
    pub fn picture_tokens(&self) -> usize {
        (self.img_size / self.patch_size / self.pixel_shuffle).pow(2)
    }

    pub(super) fn tower(&self) -> SiglipConfig {
        SiglipConfig {
            patch: self.patch_size,
            width: self.image_embed_dim,
            heads: self.image_n_head,
            inner: self.image_inner,
            blocks: self.num_blks,
        }
    }

    pub(super) fn decoder(&self) -> LlamaConfig {
        LlamaConfig {
            width: self.n_embd,
            heads: self.n_head,
            kv_heads: self.n_kv_head,
            inner: self.n_inner,
            blocks: self.n_layer,
            theta: self.rope_theta,
        }
    }

    /// See [`crate::Model::check`].
    pub(super) fn check_sizes(&self) -> Result<(), SizeError> {
        let [img, patch] = [("img_size", self.img_size), ("patch_size", self.patch_size)];
        let vision = [("image_embed_dim", self.image_embed_dim), ("image_n_head", self.image_n_head)];
        let text = [("n_embd", self.n_embd), ("n_head", self.n_head)];
        let (kv, shuffle) = (("n_kv_head", self.n_kv_head), ("pixel_shuffle", self.pixel_shuffle));
        let rest = [
            kv,
            shuffle,
            ("image_inner", self.image_inner),
            ("n_inner", self.n_inner),
            ("vocab_size", self.vocab_size),
        ];
        SizeError::unless_positive(&[&[img, patch][..], &vision, &text, &rest].concat())?;
        SizeError::unless_multiples(&[[img, patch], vision, text, [text[1], kv]])?;
        let side = self.img_size / self.patch_size;
        SizeError::unless_multiples(&[[("img_size / patch_size", side), shuffle]])?;
        let head = self.n_embd / self.n_head;
        SizeError::unless_multiples(&[[("n_embd / n_head", head), ("the pairs of rotary positions:", 2)]])?;
        if !(self.rope_theta.is_finite() && self.rope_theta >= 1.0) {
            return Err(SizeError(format!("rope_theta {} is below 1", self.rope_theta)));
        }
        SizeError::unless_room(self.max_positions)
    }

    /// See [`crate::Model::told`].
    pub(super) fn told_sizes(&self, shapes: &Shapes<'_>) -> Sizes {
        let vision = |name: &str, axis| shapes.extent(&format!("model.vision_model.{name}.weight"), axis);
        let text = |name: &str, axis| shapes.extent(&format!("model.text_model.{name}.weight"), axis);
        let patch = vision("embeddings.patch_embedding", 2);
        let (width, n_embd) = (vision("embeddings.patch_embedding", 0), text("embed_tokens", 1));
        let joined = shapes.extent("model.connector.modality_projection.proj.weight", 1);
        let ratio = |a: Option<usize>, b: Option<usize>| a?.checked_div(b?);
        known([
            ("image_embed_dim", width),
            ("patch_size", patch),
            ("img_size", Shapes::side(vision("embeddings.position_embedding", 0), patch)),
            ("image_inner", vision("encoder.layers.0.mlp.fc1", 0)),
            ("pixel_shuffle", ratio(joined, width).map(usize::isqrt)),
            ("vocab_size", text("embed_tokens", 0)),
            ("n_embd", n_embd),
            // The shapes do not tell into how many heads this is cut.
            (KEY_WIDTH, text("layers.0.self_attn.k_proj", 0)),
            ("n_inner", text("layers.0.mlp.gate_proj", 0)),
            ("num_blks", shapes.blocks("model.vision_model.encoder.layers.")),
            ("n_layer", shapes.blocks("model.text_model.layers.")),
        ])
    }
}
