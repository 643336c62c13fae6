//! `increment`: a counter, one further, or as far as another value says.

use super::common::{arity, exact, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{DType, TensorType};

/// `x + 1`, or `x + by` with a second input by u32 `[]`; u32, wrapping at 2^32.
#[derive(Clone, Debug, PartialEq)]
pub struct Increment;

impl OpDef for Increment {
    const NAME: &'static str = "increment";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        if inputs.len() == 2 {
            exact(inputs[1], &TensorType::u32([]), "by")?;
        } else {
            arity(inputs, 1)?;
        }
        if inputs[0].dtype != DType::U32 {
            return Err(format!("counts in u32, found {}", inputs[0]));
        }
        Ok(vec![inputs[0].clone()])
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let by = inputs.get(1).map_or(1, |by| by.as_u32()[0]);
        let data = inputs[0].as_u32().iter().map(|x| x.wrapping_add(by)).collect();
        vec![Tensor::u32(inputs[0].shape.clone(), data)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("it counts")
    }

    fn sample(g: &mut Gen) -> Sample {
        let mut inputs = vec![(TensorType::u32(g.shape(0, 2)), Fill::Below(u32::MAX))];
        if g.one_in(2) {
            inputs.push((TensorType::u32([]), Fill::Below(3)));
        }
        Sample::no_gradient(Self, inputs)
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 1)
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }
}
