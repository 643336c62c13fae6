//! `layer_norm`: row by row, statistics in f64.

use super::Kernel;
use super::elementwise::CHUNK;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::sums::{sum_squares_wide, sum_wide};
use ocelli_ir::ops::LayerNorm;

/// Normalises a row and returns its mean and reciprocal standard deviation.
#[inline(always)]
fn row(y: &mut [f32], x: &[f32], gamma: &[f32], beta: &[f32], eps: f64) -> (f32, f32) {
    let n = x.len() as f64;
    let mean = sum_wide(x) / n;
    let var = sum_squares_wide(x, mean) / n;
    let rstd = (1.0 / (var + eps).sqrt()) as f32;
    // The mean in two floats: where elements are close to each other, its rounding would be what is left.
    let high = mean as f32;
    let low = (mean - f64::from(high)) as f32;
    for (((y, &x), &g), &b) in y.iter_mut().zip(x).zip(gamma).zip(beta) {
        *y = (((x - high) - low) * rstd).mul_add(g, b);
    }
    (high, rstd)
}

impl Kernel for LayerNorm {
    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [x, gamma, beta] = [0, 1, 2].map(|i| ins.dense::<f32>(i));
        let [y, mean, rstd] = outs.take::<f32, 3>();
        let cols = gamma.len().max(1);
        let chunk = (CHUNK / cols).max(1);
        let cut = [Cut::new(0, chunk)];
        let tiles = [(y.reshape(&[x.len() / cols, cols]), cut), (mean, cut), (rstd, cut)];
        par_tiles(cx, x.len() * 4, tiles, |[i], tiles| {
            let [y, mean, rstd] = tiles.map(|t| t.dense());
            let x = &x[i * chunk * cols..][..y.len()];
            cx.simd(
                #[inline(always)]
                || {
                    let rows = y.chunks_exact_mut(cols).zip(x.chunks_exact(cols));
                    for ((y, x), (mean, rstd)) in rows.zip(mean.iter_mut().zip(rstd.iter_mut())) {
                        (*mean, *rstd) = row(y, x, gamma, beta, self.eps);
                    }
                },
            );
        });
    }
}
