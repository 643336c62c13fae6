//! `loss_scale`: the factor on the loss that keeps fp16 gradients from vanishing, moved by what came of it. Decided on
//! the device (rule 5).

use super::common::{arity, exact};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};

/// Dynamic loss scaling (Micikevicius et al. 2018, as in PyTorch's `GradScaler`): halved when the gradient overflowed,
/// doubled after `interval` steps in a row that did not.
///
/// Inputs: the scale f32 `[]`, the number of steps since it last changed u32 `[]`, the norm of the gradient f32 `[]`,
/// and whether a step is taken u32 `[]`. Outputs: the next scale and number. A batch without weight, whose norm is
/// finite and which is no step, changes neither.
#[derive(Clone, Debug, PartialEq)]
pub struct LossScale {
    /// Steps in a row without overflow after which the scale is doubled.
    pub interval: u32,
}

impl LossScale {
    /// Bounds of the scale: powers of two that no rounding touches.
    pub const RANGE: [f64; 2] = [1.0 / 16_777_216.0, 16_777_216.0];

    /// The next scale and number of steps.
    pub fn next(&self, scale: f64, good: u32, norm: f64, apply: bool) -> (f64, u32) {
        let [low, high] = Self::RANGE;
        match (norm.is_finite(), apply) {
            (false, _) => ((scale * 0.5).max(low), 0),
            (true, true) if good + 1 >= self.interval => ((scale * 2.0).min(high), 0),
            (true, true) => (scale, good + 1),
            (true, false) => (scale, good),
        }
    }
}

impl OpDef for LossScale {
    const NAME: &'static str = "loss_scale";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 4)?;
        let (f32, u32) = (TensorType::f32([]), TensorType::u32([]));
        exact(inputs[0], &f32, "the scale")?;
        exact(inputs[1], &u32, "the number of steps")?;
        exact(inputs[2], &f32, "the norm")?;
        exact(inputs[3], &u32, "apply")?;
        Ok(vec![f32, u32])
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let [scale, norm] = [0, 2].map(|i| inputs[i].as_real()[0].f64());
        let [good, apply] = [1, 3].map(|i| inputs[i].as_u32()[0]);
        let (scale, good) = self.next(scale, good, norm, apply != 0);
        vec![Tensor::real([], vec![R::of(scale)]), Tensor::u32([], vec![good])]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("it decides")
    }

    fn sample(g: &mut Gen) -> Sample {
        let number = TensorType::f32([]);
        let norm = if g.one_in(3) { Fill::Range(f64::INFINITY, f64::INFINITY) } else { Fill::Normal };
        let inputs = vec![
            (number.clone(), Fill::Range(0.5, 4.0)),
            (TensorType::u32([]), Fill::Below(4)),
            (number, norm),
            (TensorType::u32([]), Fill::Below(2)),
        ];
        Sample::no_gradient(Self { interval: g.dim(1, 4) as u32 }, inputs)
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        4
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0), (1, 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::LossScale;

    #[test]
    fn halved_by_an_overflow_and_doubled_by_patience() {
        let op = LossScale { interval: 3 };
        assert_eq!(op.next(8.0, 2, f64::INFINITY, false), (4.0, 0));
        assert_eq!(op.next(8.0, 1, f64::NAN, false), (4.0, 0));
        assert_eq!(op.next(8.0, 1, 1.0, true), (8.0, 2));
        assert_eq!(op.next(8.0, 2, 1.0, true), (16.0, 0));
        assert_eq!(op.next(8.0, 2, 0.0, false), (8.0, 2), "no weight, no step");
        let [low, high] = LossScale::RANGE;
        assert_eq!((op.next(low, 0, f64::NAN, false).0, op.next(high, 2, 1.0, true).0), (low, high));
    }
}
