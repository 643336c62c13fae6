//! `rms_norm`: row by row, the mean square in f64.

use super::Kernel;
use super::elementwise::CHUNK;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::sums::sum_squares_wide;
use ocelli_ir::ops::RmsNorm;

/// Normalises a row and returns the factor.
#[inline(always)]
fn row(y: &mut [f32], x: &[f32], gamma: &[f32], eps: f64) -> f32 {
    let factor = (1.0 / (sum_squares_wide(x, 0.0) / x.len() as f64 + eps).sqrt()) as f32;
    for ((y, &x), &g) in y.iter_mut().zip(x).zip(gamma) {
        *y = x * factor * g;
    }
    factor
}

impl Kernel for RmsNorm {
    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [x, gamma] = [0, 1].map(|i| ins.dense::<f32>(i));
        let [y, factor] = outs.take::<f32, 2>();
        let cols = gamma.len().max(1);
        let chunk = (CHUNK / cols).max(1);
        let cut = [Cut::new(0, chunk)];
        let tiles = [(y.reshape(&[x.len() / cols, cols]), cut), (factor, cut)];
        par_tiles(cx, x.len() * 3, tiles, |[i], tiles| {
            let [y, factor] = tiles.map(|t| t.dense());
            let x = &x[i * chunk * cols..][..y.len()];
            cx.simd(
                #[inline(always)]
                || {
                    let rows = y.chunks_exact_mut(cols).zip(x.chunks_exact(cols));
                    for ((y, x), factor) in rows.zip(factor.iter_mut()) {
                        *factor = row(y, x, gamma, self.eps);
                    }
                },
            );
        });
    }
}
