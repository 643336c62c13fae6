//! A batch as program inputs, and the loss over it as a sum and a weight (rule 4).

use super::Size;
use ocelli_ir::ops::{CrossEntropy, NormalizePixels};
use ocelli_ir::{DType, Graph, GraphError, TensorType, Value};
use ocelli_models::nn::Context;
use ocelli_models::{Model, Scores};

/// How pictures reach a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pictures {
    /// u8 RGB; normalised on the device.
    Bytes,
    /// f32, normalised already.
    Floats,
}

/// The inputs of a training or evaluation program.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// `images`: `[B, S, S, 3]`, u8 or f32.
    pub images: Value,
    /// `tokens`: u32 `[B, T]`.
    pub tokens: Value,
    /// `targets`: u32 `[B, T + 1]`; position 0 is the picture's.
    pub targets: Value,
    /// `weights`: f32 `[B, T + 1]`, 0 where nothing is to be learnt.
    pub weights: Value,
    /// `samples`: u32 `[B]`, the place of each row in the whole data stream.
    pub samples: Value,
}

impl Inputs {
    /// Declares the inputs, in this order.
    pub fn declare(g: &mut Graph, model: &dyn Model, size: Size, pictures: Pictures) -> Self {
        let Size { batch, text } = size;
        Self {
            images: images(g, model, batch, pictures),
            tokens: g.input("tokens", TensorType::u32([batch, text])),
            targets: g.input("targets", TensorType::u32([batch, text + 1])),
            weights: g.input("weights", TensorType::f32([batch, text + 1])),
            samples: g.input("samples", TensorType::u32([batch])),
        }
    }
}

/// The input `images` `[B, S, S, 3]`.
pub(super) fn images(g: &mut Graph, model: &dyn Model, batch: usize, pictures: Pictures) -> Value {
    let dtype = if pictures == Pictures::Bytes { DType::U8 } else { DType::F32 };
    let side = model.picture_side();
    g.input("images", TensorType::new(dtype, [batch, side, side, 3]))
}

/// Pictures as the model takes them.
pub(super) fn normalized(g: &mut Graph, images: Value) -> Result<Value, GraphError> {
    if g.ty(images).dtype == DType::U8 { g.one(NormalizePixels::IMAGENET, &[images]) } else { Ok(images) }
}

/// The summed, weighted loss and the sum of the weights, both f32 `[]`.
pub(super) fn loss(
    cx: &mut Context<'_>,
    model: &dyn Model,
    i: &Inputs,
) -> Result<(Value, Value), GraphError> {
    let pictures = normalized(cx.g, i.images)?;
    let scores = model.scores(cx, pictures, i.tokens)?;
    cx.g.enter("loss");
    let rows = cx.g.ty(i.targets).shape.numel();
    let targets = cx.g.reshape(i.targets, [rows])?;
    let flat = cx.g.reshape(i.weights, [rows])?;
    let loss = match scores {
        Scores::Logits(logits) => {
            let logits = by_rows(cx.g, logits)?;
            cx.g.one(CrossEntropy, &[logits, targets, flat])?
        }
        Scores::Product { hidden, weight } => {
            let hidden = by_rows(cx.g, hidden)?;
            cx.g.linear_cross_entropy(hidden, weight, targets, flat)?
        }
    };
    let weight = cx.g.sum_all(i.weights)?;
    cx.g.leave();
    Ok((loss, weight))
}

/// `[.., C]` as `[N, C]`.
fn by_rows(g: &mut Graph, x: Value) -> Result<Value, GraphError> {
    let (rows, cols) = g.ty(x).shape.rows();
    g.reshape(x, [rows, cols])
}
