//! `softmax`: row by row.

use super::Kernel;
use super::elementwise::CHUNK;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::{math::exp, sums};
use ocelli_ir::ops::Softmax;

#[inline(always)]
fn row(out: &mut [f32], x: &[f32]) {
    let max = sums::max(x);
    for (o, &x) in out.iter_mut().zip(x) {
        *o = exp(x - max);
    }
    let factor = (1.0 / sums::sum_wide(out)) as f32;
    for o in out {
        *o *= factor;
    }
}

impl Kernel for Softmax {
    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let x = ins.dense::<f32>(0);
        let [out] = outs.take::<f32, 1>();
        let cols = out.layout().shape().last().copied().unwrap_or(1).max(1);
        let chunk = (CHUNK / cols).max(1);
        let out = out.reshape(&[x.len() / cols, cols]);
        par_tiles(cx, x.len() * 8, [(out, [Cut::new(0, chunk)])], |[i], [out]| {
            let out = out.dense();
            let x = &x[i * chunk * cols..][..out.len()];
            cx.simd(
                #[inline(always)]
                || {
                    for (o, x) in out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)) {
                        row(o, x);
                    }
                },
            );
        });
    }
}
