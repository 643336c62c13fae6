//! Which sizes of a model go together, what the ones left open are, and how many parameters they make.

use crate::choices::Architecture::{Seemore, Smol};
use crate::limits::Check;
use crate::types::{Config, ModelConfig};

/// Models with more parameters are refused.
const MAX_PARAMETERS: u128 = 10_000_000_000;

/// Checks of the model's sizes.
pub(crate) const CHECKS: &[Check] = &[
    (&["model_config.img_size", "model_config.patch_size"], |c| {
        multiple(
            ("img_size", c.model.img_size),
            ("patch_size", c.model.patch_size),
            "patches must fill the picture",
        )
    }),
    (
        &["model_config.image_embed_dim", "model_config.n_head", "model_config.image_n_head", ARCHITECTURE],
        |c| {
            let m = &c.model;
            let own = m.image_n_head.filter(|_| m.architecture == Smol).map(|n| ("image_n_head", n));
            multiple(
                ("image_embed_dim", m.image_embed_dim),
                own.unwrap_or(("n_head", m.n_head)),
                "every head takes an equal part of the vision width",
            )
        },
    ),
    (&["model_config.n_embd", "model_config.n_head"], |c| {
        multiple(
            ("n_embd", c.model.n_embd),
            ("n_head", c.model.n_head),
            "every head takes an equal part of the text width",
        )
    }),
    (&["model_config.n_head", "model_config.n_kv_head", ARCHITECTURE], |c| {
        let kv = c.model.n_kv_head.filter(|_| c.model.architecture == Smol)?;
        let why = "equal groups of query heads share a key head";
        multiple(("n_head", c.model.n_head), ("n_kv_head", kv), why)
    }),
    (&["model_config.n_embd", "model_config.n_head", ARCHITECTURE], |c| {
        let (width, heads) = (c.model.n_embd, c.model.n_head);
        let head = width / heads.max(1);
        (c.model.architecture == Smol && width.is_multiple_of(heads.max(1)) && head % 2 != 0).then(|| {
            format!(
                "n_embd {width} / n_head {heads} is {head}: rotary positions turn pairs, so a head's width must be even"
            )
        })
    }),
    (
        &["model_config.pixel_shuffle", "model_config.img_size", "model_config.patch_size", ARCHITECTURE],
        |c| {
            let m = &c.model;
            let (side, group) = (m.img_size / m.patch_size.max(1), m.pixel_shuffle);
            (m.architecture == Smol && !side.is_multiple_of(group.max(1))).then(|| {
            format!(
                "pixel_shuffle {group} does not divide the {side} patches along a side (img_size {} / patch_size {})",
                m.img_size, m.patch_size
            )
        })
        },
    ),
    (&["model_config.rope_theta", ARCHITECTURE], |c| {
        let theta = c.model.rope_theta;
        (c.model.architecture == Smol && theta < 1.0)
            .then(|| format!("rope_theta {theta} is below 1: wavelengths would shrink"))
    }),
    (
        &[
            "model_config.n_embd",
            "model_config.num_blks",
            "model_config.n_layer",
            "model_config.n_head",
            "model_config.image_embed_dim",
            "model_config.img_size",
            "model_config.patch_size",
            "model_config.max_positions",
            "model_config.image_inner",
            "model_config.n_inner",
            "model_config.n_kv_head",
            "model_config.pixel_shuffle",
            ARCHITECTURE,
        ],
        parameters,
    ),
];

const ARCHITECTURE: &str = "model_config.architecture";

fn multiple(whole: (&str, usize), part: (&str, usize), why: &str) -> Option<String> {
    (!whole.1.is_multiple_of(part.1.max(1)))
        .then(|| format!("{} {} is not a multiple of {} {}: {why}", whole.0, whole.1, part.0, part.1))
}

fn parameters(config: &Config) -> Option<String> {
    // The vocabulary is not known yet; without it the count is the least that the model can have.
    let count = config.model.parameters(0);
    (count > MAX_PARAMETERS).then(|| {
        format!("the model would have {count} parameters, more than the limit of {MAX_PARAMETERS}; make it smaller")
    })
}

fn wide(x: usize) -> u128 {
    x as u128
}

impl ModelConfig {
    /// Attention heads of the vision transformer.
    pub fn image_heads(&self) -> usize {
        self.image_n_head.unwrap_or(self.n_head)
    }

    /// Width inside the vision transformer's feed-forward parts.
    pub fn image_inner_width(&self) -> usize {
        self.image_inner.unwrap_or(4 * self.image_embed_dim)
    }

    /// Heads of the decoder's keys and values.
    pub fn kv_heads(&self) -> usize {
        self.n_kv_head.unwrap_or(self.n_head)
    }

    /// Width inside the decoder's feed-forward parts, where it has a gate.
    pub fn inner_width(&self) -> usize {
        self.n_inner.unwrap_or((8 * self.n_embd).div_ceil(3).next_multiple_of(8))
    }

    /// Number of parameters with a vocabulary of `vocabulary` tokens. Cannot overflow for checked sizes.
    pub fn parameters(&self, vocabulary: usize) -> u128 {
        match self.architecture {
            Seemore => self.seemore_parameters(wide(vocabulary)),
            Smol => self.smol_parameters(wide(vocabulary)),
        }
    }

    /// Patches of a picture, and weights and biases that read one.
    fn patches(&self) -> (u128, u128) {
        let (patch, vision) = (wide(self.patch_size), wide(self.image_embed_dim));
        ((wide(self.img_size) / patch.max(1)).pow(2), 3 * patch * patch * vision + vision)
    }

    fn seemore_parameters(&self, vocabulary: u128) -> u128 {
        let (vision, text) = (wide(self.image_embed_dim), wide(self.n_embd));
        // wqkv 3dd, proj dd + d, feed-forward 8dd + 5d, two norms 4d.
        let block = |d: u128| 12 * d * d + 10 * d;
        let (patches, embedding) = self.patches();
        let vision_part = embedding
            + vision * (patches + 2) // positions with the class token's, class token
            + wide(self.num_blks) * block(vision)
            + 2 * vision; // last norm
        let projector = 4 * vision * vision + 4 * vision + 4 * vision * text + text;
        let decoder = wide(self.max_positions) * text + wide(self.n_layer) * block(text) + 2 * text;
        let tokens = vocabulary * (2 * text + 1); // table, head with bias
        vision_part + projector + decoder + tokens
    }

    fn smol_parameters(&self, vocabulary: u128) -> u128 {
        let (vision, text) = (wide(self.image_embed_dim), wide(self.n_embd));
        let (image_inner, inner) = (wide(self.image_inner_width()), wide(self.inner_width()));
        let (patches, embedding) = self.patches();
        // Four projections with biases, feed-forward part, two norms.
        let image_block = 4 * vision * (vision + 1) + 2 * vision * image_inner + image_inner + 5 * vision;
        let vision_part = embedding + vision * patches + wide(self.num_blks) * image_block + 2 * vision;
        let projector = wide(self.pixel_shuffle).pow(2) * vision * text;
        let kv = text / wide(self.n_head).max(1) * wide(self.kv_heads());
        // Queries and output, keys and values, three of the feed-forward part, two norms.
        let block = 2 * text * text + 2 * text * kv + 3 * text * inner + 2 * text;
        let tables = if self.tie_weights { 1 } else { 2 };
        vision_part + projector + wide(self.n_layer) * block + text + tables * vocabulary * text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted from the shapes of two small reference models in PyTorch.
    #[test]
    fn parameters_are_those_of_the_reference() {
        let mut model = ModelConfig {
            img_size: 32,
            patch_size: 8,
            image_embed_dim: 48,
            num_blks: 2,
            n_embd: 32,
            n_head: 4,
            n_layer: 2,
            max_positions: 64,
            ..ModelConfig::default()
        };
        assert_eq!(model.parameters(23), 110_887);
        model = ModelConfig {
            img_size: 30,
            patch_size: 10,
            image_embed_dim: 40,
            num_blks: 1,
            n_embd: 24,
            n_head: 2,
            n_layer: 3,
            max_positions: 40,
            ..model
        };
        assert_eq!(model.parameters(31), 66_567);
    }

    /// Counted from the shapes of the small model of `scripts/make_op_golden.py`.
    #[test]
    fn parameters_of_smol_are_those_of_its_shapes() {
        let mut model = ModelConfig {
            architecture: Smol,
            img_size: 16,
            patch_size: 4,
            image_embed_dim: 16,
            image_n_head: Some(2),
            image_inner: Some(40),
            num_blks: 2,
            pixel_shuffle: 2,
            n_embd: 24,
            n_head: 4,
            n_kv_head: Some(2),
            n_inner: Some(32),
            n_layer: 2,
            ..ModelConfig::default()
        };
        assert_eq!(model.parameters(19), 16_224);
        model.tie_weights = false;
        assert_eq!(model.parameters(19), 16_224 + 19 * 24);
        assert_eq!((ModelConfig { n_embd: 576, n_inner: None, ..model }).inner_width(), 1536);
    }
}
