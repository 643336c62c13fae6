//! `cross_entropy`: rows side by side, the loss added up in f64 in their order.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::sums;
use ocelli_ir::ops::CrossEntropy;
use ocelli_ir::{DType, TensorType};

/// Logits that one task takes.
const CHUNK: usize = 8 * 1024;

/// The logarithm of the sum of exponentials.
#[inline(always)]
pub(super) fn log_sum_exp(x: &[f32]) -> f32 {
    let max = sums::max(x);
    (f64::from(max) + sums::sum_exp_wide(x, max).ln()) as f32
}

impl Kernel for CrossEntropy {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, mut outs: Outputs<'_>) {
        let (logits, targets, weights) = (ins.get::<f32>(0), ins.dense::<u32>(1), ins.dense::<f32>(2));
        let v = logits.layout.shape()[1].max(1);
        let logits = logits.dense();
        let chunk = (CHUNK / v).max(1);
        par_tiles(cx, logits.len() * 8, [(outs.get(1), [Cut::new(0, chunk)])], |[i], [lse]| {
            let lse = lse.dense();
            let rows = logits[i * chunk * v..].chunks_exact(v);
            cx.simd(
                #[inline(always)]
                || {
                    for (o, row) in lse.iter_mut().zip(rows.clone()) {
                        *o = log_sum_exp(row);
                    }
                },
            );
        });
        let lse = outs.get::<f32>(1).dense();
        let row = |i: usize| match logits[i * v..][..v].get(targets[i] as usize) {
            Some(&x) if weights[i] != 0.0 => f64::from(weights[i]) * (f64::from(lse[i]) - f64::from(x)),
            _ => 0.0,
        };
        let loss: f64 = (0..targets.len().min(logits.len() / v)).map(row).sum();
        outs.get::<f32>(0).dense()[0] = loss as f32;
    }
}
