//! Linear layers, layer norm, embeddings, with PyTorch's initial distributions.

use super::Context;
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

/// Layer norm on the last axis; parameters `weight` (ones) and `bias` (zeros), `[width]`.
///
/// # Errors
/// If the last extent of `x` is not `width`.
#[track_caller]
pub fn layer_norm(cx: &mut Context<'_>, x: Value, width: usize) -> Result<Value, GraphError> {
    let weight = cx.param("weight", &[width], Init::Constant(1.0))?;
    let bias = cx.param("bias", &[width], Init::Zeros)?;
    cx.g.layer_norm(x, weight, bias)
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
