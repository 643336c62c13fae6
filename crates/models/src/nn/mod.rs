//! Layers. A layer is a function from values to values; its parameters are named by the path it is built at.

mod attention;
mod block;
mod context;
mod linear;

pub use attention::{KvCache, SelfAttention, self_attention};
pub use block::{BlockConfig, Residual, block};
pub use context::{Context, DropoutKeys, Mode};
pub use linear::{embedding, layer_norm, linear, mlp};
