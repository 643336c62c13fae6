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

pub use config::SeemoreConfig;

use crate::nn::{Context, KvCache};
use crate::{Model, Scores, Shapes, SizeError, Sizes};
use ocelli_ir::{GraphError, Value};

/// Features of pictures f32 `[B, S, S, 3]` (normalised): `[B, image_embed_dim]`.
///
/// # Errors
/// If the picture is not of the configured size.
pub fn image_features(cx: &mut Context<'_>, c: &SeemoreConfig, pictures: Value) -> Result<Value, GraphError> {
    cx.scoped("vision_encoder", |cx| vit::vit(cx, c, pictures))
}

impl From<SeemoreConfig> for Box<dyn Model> {
    fn from(model: SeemoreConfig) -> Self {
        Box::new(model)
    }
}

impl Model for SeemoreConfig {
    fn picture_side(&self) -> usize {
        self.img_size
    }

    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn max_places(&self) -> usize {
        self.max_positions
    }

    fn check(&self) -> Result<(), SizeError> {
        self.check_sizes()
    }

    fn told(&self, shapes: &Shapes<'_>) -> Sizes {
        Self::told_sizes(shapes)
    }

    fn scores(&self, cx: &mut Context<'_>, pictures: Value, tokens: Value) -> Result<Scores, GraphError> {
        let features = image_features(cx, self, pictures)?;
        let full = |cx: &mut _| decoder::full(cx, self, features, tokens, None, &KvCache::None);
        Ok(Scores::Logits(cx.scoped("decoder", full)?))
    }

    fn prefill(
        &self,
        cx: &mut Context<'_>,
        pictures: Value,
        tokens: Value,
        last: Value,
        places: usize,
    ) -> Result<Value, GraphError> {
        let features = image_features(cx, self, pictures)?;
        let cache = KvCache::Prefill { positions: places };
        cx.scoped("decoder", |cx| decoder::full(cx, self, features, tokens, Some(last), &cache))
    }

    fn decode(
        &self,
        cx: &mut Context<'_>,
        token: Value,
        at: Value,
        places: usize,
    ) -> Result<Value, GraphError> {
        cx.scoped("decoder", |cx| decoder::one(cx, self, token, at, places))
    }
}
