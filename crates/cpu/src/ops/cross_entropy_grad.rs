//! `cross_entropy_grad`: row by row.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::math::exp;
use ocelli_ir::ops::CrossEntropyGrad;
use ocelli_ir::{DType, TensorType};

/// Logits that one task takes.
const CHUNK: usize = 8 * 1024;

/// Gradient of one row; `factor` is dloss times the row's weight.
#[inline(always)]
fn row(out: &mut [f32], x: &[f32], target: u32, factor: f32, lse: f32) {
    if factor == 0.0 || target as usize >= x.len() {
        return out.fill(0.0);
    }
    for (o, &x) in out.iter_mut().zip(x) {
        *o = factor * exp(x - lse);
    }
    let hot = target as usize;
    out[hot] = factor * (exp(x[hot] - lse) - 1.0);
}

impl Kernel for CrossEntropyGrad {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let (logits, targets) = (ins.dense::<f32>(0), ins.dense::<u32>(1));
        let (weights, lse, dloss) = (ins.dense::<f32>(2), ins.dense::<f32>(3), ins.scalar::<f32>(4));
        let [out] = outs.take::<f32, 1>();
        let v = out.layout().shape()[1].max(1);
        let chunk = (CHUNK / v).max(1);
        par_tiles(cx, logits.len() * 8, [(out, [Cut::new(0, chunk)])], |[i], [out]| {
            let out = out.dense();
            cx.simd(
                #[inline(always)]
                || {
                    for (j, out) in out.chunks_exact_mut(v).enumerate() {
                        let r = i * chunk + j;
                        // A row of weight 0 gives 0 even if dloss is infinite.
                        let factor = if weights[r] == 0.0 { 0.0 } else { dloss * weights[r] };
                        row(out, &logits[r * v..][..v], targets[r], factor, lse[r]);
                    }
                },
            );
        });
    }
}
