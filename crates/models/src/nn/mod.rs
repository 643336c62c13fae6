//! Layers. A layer is a function from values to values; its parameters are named by the path it is built at.

mod attention;
mod block;
mod context;
mod grouped;
mod linear;

pub use attention::{KvCache, SelfAttention, self_attention};
pub use block::{BlockConfig, Residual, block};
pub use context::{Context, DropoutKeys, Mode};
pub use grouped::{Angles, GroupedAttention, grouped_attention};
pub use linear::{EPS, embedding, layer_norm, linear, mlp, patch_embedding, rms_norm};
