//! A captioner in the manner of SmolVLM and nanoVLM: a SigLIP-style tower, groups of patches as tokens, a Llama-style
//! decoder that reads them in front of the text. Parameter names are those of Hugging Face's SmolVLM.
//!
//! ```text
//! picture [B, S, S, 3] -> tower [B, P, D_v] -> pixel shuffle, linear -> [B, P/r^2, D_t]
//! tokens [B, T] -> embedding, the picture's tokens in front -> decoder -> the last of the picture's and all of the
//! text's places [B, T+1, D_t] -> head [B, T+1, V]
//! ```

mod config;
mod projector;

pub use config::SmolConfig;

use crate::nn::{Context, KvCache};
use crate::{Model, Scores, Shapes, SizeError, Sizes, llama, siglip};
use ocelli_ir::ops::{Broadcast, Increment};
use ocelli_ir::{DType, GraphError, Init, Value};

impl SmolConfig {
    /// The token table `[vocab, D_t]`.
    fn table(&self, cx: &mut Context<'_>) -> Result<Value, GraphError> {
        let init = Init::Normal { std: (self.n_embd as f64).sqrt().recip() };
        let shape = [self.vocab_size, self.n_embd];
        cx.scoped("model.text_model.embed_tokens", |cx| cx.param("weight", &shape, init))
    }

    /// The head `[vocab, D_t]`.
    fn head(&self, cx: &mut Context<'_>) -> Result<Value, GraphError> {
        if self.tie_weights {
            return self.table(cx);
        }
        let init = Init::Uniform { bound: (self.n_embd as f64).sqrt().recip() };
        cx.scoped("lm_head", |cx| cx.param("weight", &[self.vocab_size, self.n_embd], init))
    }

    /// The decoder's answer at place 0, the last of the picture's, and at each token: `[B, T + 1, D_t]`.
    fn hidden(
        &self,
        cx: &mut Context<'_>,
        pictures: Value,
        tokens: Value,
        cache: &KvCache,
    ) -> Result<Value, GraphError> {
        let (t, n) = (cx.g.shape(tokens)[1], self.picture_tokens());
        let seen = cx.scoped("model.vision_model", |cx| siglip::tower(cx, &self.tower(), pictures))?;
        let seen = cx.scoped("model.connector", |cx| projector::projector(cx, self, seen))?;
        let table = self.table(cx)?;
        let text = cx.g.gather_rows(table, tokens)?;
        let x = cx.g.concat(&[seen, text], 1)?;
        let start = cx.g.constant(0.0, DType::U32);
        let positions = cx.g.positions(start, n + t)?;
        let decoder = |cx: &mut _| llama::decoder(cx, &self.decoder(), x, positions, cache);
        let x = cx.scoped("model.text_model", decoder)?;
        cx.g.slice(x, 1, n - 1, t + 1)
    }

    /// Positions of the cache for so many places.
    fn room(&self, places: usize) -> usize {
        places + self.picture_tokens() - 1
    }
}

impl From<SmolConfig> for Box<dyn Model> {
    fn from(model: SmolConfig) -> Self {
        Box::new(model)
    }
}

impl Model for SmolConfig {
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
        self.told_sizes(shapes)
    }

    fn scores(&self, cx: &mut Context<'_>, pictures: Value, tokens: Value) -> Result<Scores, GraphError> {
        let hidden = self.hidden(cx, pictures, tokens, &KvCache::None)?;
        Ok(Scores::Product { hidden, weight: self.head(cx)? })
    }

    fn prefill(
        &self,
        cx: &mut Context<'_>,
        pictures: Value,
        tokens: Value,
        last: Value,
        places: usize,
    ) -> Result<Value, GraphError> {
        let cache = KvCache::Prefill { positions: self.room(places) };
        let hidden = self.hidden(cx, pictures, tokens, &cache)?;
        let (rows, width) = cx.g.ty(hidden).shape.rows();
        let rows = cx.g.reshape(hidden, [rows, width])?;
        let hidden = cx.g.gather_rows(rows, last)?;
        let weight = self.head(cx)?;
        cx.g.linear(hidden, weight, None)
    }

    fn decode(
        &self,
        cx: &mut Context<'_>,
        token: Value,
        at: Value,
        places: usize,
    ) -> Result<Value, GraphError> {
        let b = cx.g.shape(token)[0];
        let table = self.table(cx)?;
        let x = cx.g.gather_rows(table, token)?;
        let x = cx.g.reshape(x, [b, 1, self.n_embd])?;
        // Place 0 is the last of the picture's positions.
        let before = cx.g.constant((self.picture_tokens() - 1) as f64, DType::U32);
        let at = cx.g.one(Increment, &[before, at])?;
        let positions = cx.g.positions(at, 1)?;
        let next = cx.g.one(Increment, &[at])?;
        let valid = cx.g.one(Broadcast { shape: [b].into() }, &[next])?;
        let cache = KvCache::Decode { positions: self.room(places), at, valid };
        let decoder = |cx: &mut _| llama::decoder(cx, &self.decoder(), x, positions, &cache);
        let hidden = cx.scoped("model.text_model", decoder)?;
        let hidden = cx.g.reshape(hidden, [b, self.n_embd])?;
        let weight = self.head(cx)?;
        cx.g.linear(hidden, weight, None)
    }
}
