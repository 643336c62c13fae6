//! `dropout`: zeroes elements at random and scales the others up. No mask is stored: the decisions are a
//! function of seed, step, sample and coordinates ([`crate::dropout`]), so the gradient makes them again.

use super::common::{arity, exact, float, per_output};
use crate::dropout::Dropout;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Data, Real, Tensor};
use crate::{Cut, TensorType};

/// Inputs x `[B, .., C]`, seed u32 `[2]`, step u32 `[]`, sample u32 `[B]`. Output like x: kept elements times
/// `1 / (1 - p)`, others 0. The coordinates of an element are row = its index in the middle axes flattened,
/// column = its index in the last axis (rank 1: both 0).
#[derive(Clone, Debug, PartialEq)]
pub struct DropoutOp {
    /// Probability and site.
    pub dropout: Dropout,
}

/// Types of the three inputs that key dropout, for a batch of `b` samples.
pub fn key_types(b: usize) -> [TensorType; 3] {
    [TensorType::u32([2]), TensorType::u32([]), TensorType::u32([b])]
}

/// Checks the three inputs that key dropout.
pub(super) fn check_keys(inputs: &[&TensorType], b: usize) -> Result<(), String> {
    let names = ["the seed", "the step", "the sample indices"];
    key_types(b).iter().zip(inputs).zip(names).try_for_each(|((want, ty), name)| exact(ty, want, name))
}

/// The three inputs that key dropout, filled at random.
pub(super) fn sample_keys(b: usize) -> Vec<(TensorType, Fill)> {
    key_types(b).into_iter().map(|ty| (ty, Fill::Below(1 << 20))).collect()
}

impl OpDef for DropoutOp {
    const NAME: &'static str = "dropout";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 4)?;
        float(inputs[0], "x")?;
        let b = *inputs[0].shape.first().ok_or("x needs a batch axis")?;
        check_keys(&inputs[1..], b)?;
        Ok(vec![inputs[0].clone()])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let x = inputs[0].as_real();
        let (seed, step, samples) = (inputs[1].as_u32(), inputs[2].as_u32(), inputs[3].as_u32());
        let shape = &inputs[0].shape;
        let per_sample = shape[1..].iter().product::<usize>();
        let cols = if shape.len() > 1 { shape[shape.len() - 1] } else { 1 };
        let scale = R::of(self.dropout.scale());
        let keeps = |i: usize| {
            let (b, j) = (i / per_sample, i % per_sample);
            self.dropout.keeps([seed[0], seed[1]], step[0], samples[b], j / cols, j % cols)
        };
        let data = x.iter().enumerate().map(|(i, &x)| if keeps(i) { x * scale } else { R::zero() }).collect();
        vec![Tensor { shape: shape.clone(), data: Data::Real(data) }]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let dx = cx.g.one(self.clone(), &[dy, cx.inputs[1], cx.inputs[2], cx.inputs[3]])?;
        Ok(vec![Some(dx), None, None, None])
    }

    fn sample(g: &mut Gen) -> Sample {
        let mut shape = g.shape(1, 3);
        if let Some(last) = shape.last_mut() {
            *last += g.dim(0, 20);
        }
        let keys = sample_keys(shape[0]);
        let op = Self { dropout: Dropout { threshold: 20_000, site: 0x0123_4567_89ab_cdef } };
        Sample::new(op, [vec![(TensorType::f32(shape), Fill::Normal)], keys].concat())
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 8)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        // Decisions are keyed by the row, counted over the axes between batch and columns: a range from 0 of the first of
        // these keeps the rows' numbers.
        let first = cut.start == 0 && cut.axis(&output.shape) == Some(1) && output.shape.len() > 2;
        first.then(|| vec![Some(*cut), None, None, None].into_iter().take(inputs.len()).collect())
    }
}
