//! `step_gate`: whether an optimiser step is to be taken. The decision is made on the device: the host never waits
//! for it (rule 5).

use super::common::{arity, exact};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};

/// Inputs f32 `[]`: the norm of the gradient, the weight of the batch, its summed loss. Output u32 `[]`: 1 if norm and
/// loss are finite and the weight is above 0, else 0.
#[derive(Clone, Debug, PartialEq)]
pub struct StepGate;

impl StepGate {
    /// The decision.
    pub fn open(norm: f64, weight: f64, loss: f64) -> bool {
        norm.is_finite() && loss.is_finite() && weight > 0.0
    }
}

impl OpDef for StepGate {
    const NAME: &'static str = "step_gate";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 3)?;
        exact(inputs[0], &TensorType::f32([]), "the norm")?;
        exact(inputs[1], &TensorType::f32([]), "the weight")?;
        exact(inputs[2], &TensorType::f32([]), "the loss")?;
        Ok(vec![TensorType::u32([])])
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let [norm, weight, loss] = [0, 1, 2].map(|i| inputs[i].as_real()[0].f64());
        vec![Tensor::u32([], vec![u32::from(Self::open(norm, weight, loss))])]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("it decides")
    }

    fn sample(g: &mut Gen) -> Sample {
        let scalar = |fill| (TensorType::f32([]), fill);
        let mut any = || if g.one_in(3) { Fill::Range(f64::INFINITY, f64::INFINITY) } else { Fill::Normal };
        let (norm, loss) = (any(), any());
        Sample::no_gradient(Self, vec![scalar(norm), scalar(Fill::Range(-1.0, 1.0)), scalar(loss)])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::StepGate;

    #[test]
    fn only_a_finite_gradient_of_a_real_batch_counts() {
        assert!(StepGate::open(0.0, 1.0, 3.0));
        for (norm, weight) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (1.0, 0.0), (1.0, f64::NAN)] {
            assert!(!StepGate::open(norm, weight, 3.0));
        }
        for loss in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!StepGate::open(0.0, 1.0, loss));
        }
    }
}
