//! The vision tower: patches, CLS token, learned positions, blocks without mask, LayerNorm of the CLS row.

use super::SeemoreConfig;
use crate::nn::{BlockConfig, Context, EPS, KvCache, SelfAttention, block, layer_norm, patch_embedding};
use ocelli_ir::ops::Broadcast;
use ocelli_ir::{GraphError, Init, Value};

/// f32 `[B, S, S, 3] -> [B, image_embed_dim]`.
pub(super) fn vit(cx: &mut Context<'_>, c: &SeemoreConfig, pictures: Value) -> Result<Value, GraphError> {
    let (b, d, p) = (cx.g.shape(pictures)[0], c.image_embed_dim, c.patches());
    let patches = cx.scoped("patch_embedding.conv", |cx| {
        patch_embedding(cx, pictures, c.patch_size, c.image_embed_dim)
    })?;
    let cls = cx.param("cls_token", &[1, 1, d], Init::Zeros)?;
    let cls = cx.g.one(Broadcast { shape: [b, 1, d].into() }, &[cls])?;
    let x = cx.g.concat(&[cls, patches], 1)?;
    let positions = cx.param("pos_embedding", &[1, p + 1, d], Init::Normal { std: 1.0 })?;
    let x = cx.g.add(x, positions)?;
    let mut x = cx.dropout(x, c.emb_dropout, "emb_dropout")?;
    let attention = SelfAttention { width: d, heads: c.n_head, causal: false, dropout: c.blk_dropout };
    let config = BlockConfig { attention, residual: c.residual };
    for i in 0..c.num_blks {
        x = cx.scoped(format!("blocks.{i}"), |cx| block(cx, x, &config, &KvCache::None))?;
    }
    let cls = cx.g.slice(x, 1, 0, 1)?;
    let cls = cx.g.reshape(cls, [b, d])?;
    cx.scoped("layer_norm", |cx| layer_norm(cx, cls, d, EPS))
}
