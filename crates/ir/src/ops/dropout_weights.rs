//! `dropout_weights`: dropout on the weights of an attention that are in memory. It drops the elements that `attention`
//! drops: they are keyed by head, query and key, and decided in tiles ([`crate::dropout`]).

use super::common::{arity, float, per_output};
use super::dropout::{check_keys, sample_keys};
use crate::TensorType;
use crate::dropout::Dropout;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Data, Real, Tensor};

/// Inputs x `[B, H, Tq, Tk]`, seed u32 `[2]`, step u32 `[]`, sample u32 `[B]`. Output like x: kept elements times
/// `1 / (1 - p)`, others 0. The coordinates of an element are plane = head, row = query, column = key.
#[derive(Clone, Debug, PartialEq)]
pub struct DropoutWeights {
    /// Probability and site.
    pub dropout: Dropout,
}

impl OpDef for DropoutWeights {
    const NAME: &'static str = "dropout_weights";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 4)?;
        float(inputs[0], "x")?;
        let &[b, _, _, _] = &inputs[0].shape[..] else {
            return Err(format!("x must have 4 axes, found {}", inputs[0]));
        };
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
        let (heads, queries, keys) = (shape[1], shape[2], shape[3]);
        let scale = R::of(self.dropout.scale());
        let keeps = |i: usize| {
            let (row, key) = (i / keys, i % keys);
            let (plane, query) = (row / queries, row % queries);
            let sample = samples[plane / heads];
            self.dropout.keeps_in_tile([seed[0], seed[1]], step[0], sample, plane % heads, query, key)
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
        let shape = [g.dim(1, 3), g.dim(1, 3), g.dim(1, 20), g.dim(1, 40)];
        let op = Self { dropout: Dropout { threshold: 20_000, site: 0x0123_4567_89ab_cdef } };
        Sample::new(op, [vec![(TensorType::f32(shape), Fill::Normal)], sample_keys(shape[0])].concat())
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 8)
    }
}
