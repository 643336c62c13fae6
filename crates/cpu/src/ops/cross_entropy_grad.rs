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

/// Turns logits, a row or a part of one, into their gradient; `hot` is the target's place among them, if it is there,
/// and `factor` is dloss times the row's weight, 0 if the row adds nothing to the loss.
#[inline(always)]
pub(super) fn row(x: &mut [f32], hot: Option<usize>, factor: f32, lse: f32) {
    if factor == 0.0 {
        return x.fill(0.0);
    }
    let at_target = hot.and_then(|i| x.get(i)).map(|&x| factor * (exp(x - lse) - 1.0));
    for x in x.iter_mut() {
        *x = factor * exp(*x - lse);
    }
    if let Some((x, value)) = hot.and_then(|i| x.get_mut(i)).zip(at_target) {
        *x = value;
    }
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
                        let learnt = weights[r] != 0.0 && (targets[r] as usize) < v;
                        let factor = if learnt { dloss * weights[r] } else { 0.0 };
                        out.copy_from_slice(&logits[r * v..][..v]);
                        row(out, Some(targets[r] as usize), factor, lse[r]);
                    }
                },
            );
        });
    }
}
