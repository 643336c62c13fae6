//! Linear layers, norms, embeddings, with PyTorch's initial distributions.

use super::Context;
use ocelli_ir::ops::{LayerNorm, Patchify};
use ocelli_ir::{GraphError, Init, Value};

/// `x w^T + b` on the last axis, `[.., inputs] -> [.., outputs]`; parameters `weight` `[outputs, inputs]` and,
/// if `bias`, `bias` `[outputs]`.
///
/// Both start uniform on +-1/sqrt(inputs): what `torch.nn.Linear` does (Kaiming uniform with a = sqrt 5).
///
/// # Errors
/// If the last extent of `x` is not `inputs`.
#[track_caller]
pub fn linear(
    cx: &mut Context<'_>,
    x: Value,
    inputs: usize,
    outputs: usize,
    bias: bool,
) -> Result<Value, GraphError> {
    let init = Init::Uniform { bound: (inputs as f64).sqrt().recip() };
    let weight = cx.param("weight", &[outputs, inputs], init)?;
    let bias = if bias { Some(cx.param("bias", &[outputs], init)?) } else { None };
    cx.g.linear(x, weight, bias)
}

/// What `torch.nn.LayerNorm` adds to the variance unless told otherwise.
pub const EPS: f64 = 1e-5;

/// Layer norm on the last axis; parameters `weight` (ones) and `bias` (zeros), `[width]`. `eps` is added to the
/// variance.
///
/// # Errors
/// If the last extent of `x` is not `width`.
#[track_caller]
pub fn layer_norm(cx: &mut Context<'_>, x: Value, width: usize, eps: f64) -> Result<Value, GraphError> {
    let weight = cx.param("weight", &[width], Init::Constant(1.0))?;
    let bias = cx.param("bias", &[width], Init::Zeros)?;
    cx.g.one(LayerNorm { eps }, &[x, weight, bias])
}

/// RMS norm on the last axis; parameter `weight` (ones) `[width]`. `eps` is added to the mean square.
///
/// # Errors
/// If the last extent of `x` is not `width`.
#[track_caller]
pub fn rms_norm(cx: &mut Context<'_>, x: Value, width: usize, eps: f64) -> Result<Value, GraphError> {
    let weight = cx.param("weight", &[width], Init::Constant(1.0))?;
    cx.g.rms_norm(x, weight, eps)
}

/// Pictures `[B, S, S, 3]` to rows of patches `[B, (S / patch)^2, width]`: a convolution whose stride is its size, as
/// one matrix product. Parameters `weight` `[width, 3, patch, patch]`, as the convolution has it, and `bias`.
///
/// # Errors
/// If patches do not fill the picture.
#[track_caller]
pub fn patch_embedding(
    cx: &mut Context<'_>,
    pictures: Value,
    patch: usize,
    width: usize,
) -> Result<Value, GraphError> {
    let rows = cx.g.one(Patchify { patch }, &[pictures])?;
    let inputs = 3 * patch * patch;
    let init = Init::Uniform { bound: (inputs as f64).sqrt().recip() };
    let weight = cx.param("weight", &[width, 3, patch, patch], init)?;
    let bias = cx.param("bias", &[width], init)?;
    let weight = cx.g.reshape(weight, [width, inputs])?;
    cx.g.linear(rows, weight, Some(bias))
}

/// Two linear layers with GELU between, `[.., inputs] -> [.., outputs]`; modules `0` and `2`, as in a
/// `torch.nn.Sequential` of linear, activation, linear.
///
/// # Errors
/// If the last extent of `x` is not `inputs`.
#[track_caller]
pub fn mlp(
    cx: &mut Context<'_>,
    x: Value,
    inputs: usize,
    hidden: usize,
    outputs: usize,
) -> Result<Value, GraphError> {
    let h = cx.scoped("0", |cx| linear(cx, x, inputs, hidden, true))?;
    let h = cx.g.gelu(h)?;
    cx.scoped("2", |cx| linear(cx, h, hidden, outputs, true))
}

/// The rows of a table `weight` `[rows, width]` for u32 ids `[..]`: `[.., width]`. The table starts normal with
/// variance 1, as `torch.nn.Embedding`.
///
/// # Errors
/// If the ids are not u32.
#[track_caller]
pub fn embedding(cx: &mut Context<'_>, ids: Value, rows: usize, width: usize) -> Result<Value, GraphError> {
    let table = cx.param("weight", &[rows, width], Init::Normal { std: 1.0 })?;
    cx.g.gather_rows(table, ids)
}
