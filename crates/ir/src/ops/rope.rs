//! `rope`: rotary position embedding, which turns pairs of a head's elements by angles that grow with the position
//! (Su et al. 2021), in the half-split layout of published decoders.

use super::common::{arity, float, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{DType, Graph, GraphError, TensorType, Value};

/// Inputs x `[B, T, H, D]` with D even, and positions u32, `[T]` for all rows or `[B, T]`. Output like x.
///
/// Elements i and i + D/2 are one pair, turned by `position theta^(-2i/D)`:
/// `y_i = x_i cos - x_(i+D/2) sin`, `y_(i+D/2) = x_(i+D/2) cos + x_i sin`. Angles are f64 on every executor, so that
/// far positions are as exact as near ones. The gradient is the same turn backwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Base of the wavelengths; 10,000 in the paper.
    pub theta: f64,
    /// Turn backwards.
    pub inverse: bool,
}

impl Rope {
    /// Angle per position of pair `i` of a head of width `d`.
    pub fn frequency(&self, i: usize, d: usize) -> f64 {
        libm::pow(self.theta, -2.0 * i as f64 / d as f64)
    }

    /// Cosine and sine of a pair at a position.
    pub fn turn(&self, position: u32, frequency: f64) -> (f64, f64) {
        let (sin, cos) = libm::sincos(f64::from(position) * frequency);
        (cos, if self.inverse { -sin } else { sin })
    }
}

impl OpDef for Rope {
    const NAME: &'static str = "rope";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 2)?;
        let (x, positions) = (inputs[0], inputs[1]);
        float(x, "x")?;
        let &[b, t, _, d] = &x.shape[..] else { return Err(format!("x must be [B, T, H, D], found {x}")) };
        if d % 2 != 0 {
            return Err(format!("the width of a head must be even, found {x}"));
        }
        if positions.dtype != DType::U32 || (positions.shape.0 != [t] && positions.shape.0 != [b, t]) {
            return Err(format!("the positions must be u32 [{t}] or [{b}, {t}], found {positions}"));
        }
        if !(self.theta.is_finite() && self.theta > 0.0) {
            return Err(format!("theta must be above 0, found {}", self.theta));
        }
        Ok(vec![TensorType::f32(x.shape.clone())])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let (x, positions) = (inputs[0].as_real(), inputs[1].as_u32());
        let [_, t, h, d] = inputs[0].shape[..] else { return vec![] };
        let element = |at: usize| {
            let (c, row) = (at % d, at / (d * h));
            let position = if positions.len() == t { positions[row % t] } else { positions[row] };
            let (cos, sin) = self.turn(position, self.frequency(c % (d / 2), d));
            let (cos, sin) = (R::of(cos), R::of(sin));
            if c < d / 2 { x[at] * cos - x[at + d / 2] * sin } else { x[at] * cos + x[at - d / 2] * sin }
        };
        vec![Tensor::from_fn(inputs[0].shape.clone(), element)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let back = Self { inverse: !self.inverse, ..self.clone() };
        Ok(vec![Some(cx.g.one(back, &[dy, cx.inputs[1]])?), None])
    }

    fn sample(g: &mut Gen) -> Sample {
        let (b, t, h, d) = (g.dim(1, 3), g.dim(1, 5), g.dim(1, 3), 2 * g.dim(1, 5));
        let positions = if g.one_in(2) { TensorType::u32([t]) } else { TensorType::u32([b, t]) };
        let op = Self { theta: 100.0, inverse: g.one_in(2) };
        Sample::new(op, vec![(TensorType::f32([b, t, h, d]), Fill::Normal), (positions, Fill::Below(5000))])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 3)
    }
}

impl Graph {
    /// `x` turned by its positions.
    ///
    /// # Errors
    /// If the shapes do not fit or a head's width is odd.
    #[track_caller]
    pub fn rope(&mut self, x: Value, positions: Value, theta: f64) -> Result<Value, GraphError> {
        self.one(Rope { theta, inverse: false }, &[x, positions])
    }
}
