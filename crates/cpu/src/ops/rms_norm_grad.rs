//! `rms_norm_grad`: one pass over blocks of rows; each block's share of dgamma goes to the workspace and is added up
//! in the order of the blocks.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Outputs, par_tiles};
use crate::simd::sums::dot_wide;
use ocelli_ir::TensorType;
use ocelli_ir::ops::RmsNormGrad;

/// Rows of a block.
const ROWS: usize = 32;

/// The gradient of one row; adds its share to `dgamma`.
#[inline(always)]
fn row(dx: &mut [f32], dgamma: &mut [f32], x: &[f32], dy: &[f32], gamma: &[f32], factor: f32) {
    // t goes to dx first.
    for ((t, &dy), &g) in dx.iter_mut().zip(dy).zip(gamma) {
        *t = dy * g;
    }
    let mean = (dot_wide(dx, x) * f64::from(factor) / gamma.len() as f64) as f32;
    for (((t, dg), &x), &dy) in dx.iter_mut().zip(dgamma).zip(x).zip(dy) {
        let h = x * factor;
        *t = factor * (*t - h * mean);
        *dg = dy.mul_add(h, *dg);
    }
}

impl Kernel for RmsNormGrad {
    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let (rows, cols) = inputs[0].shape.rows();
        Needs::workspace::<f32>(rows.div_ceil(ROWS).saturating_mul(cols))
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [x, gamma, factor, dy] = [0, 1, 2, 3].map(|i| ins.dense::<f32>(i));
        let [dx, dgamma] = outs.take::<f32, 2>();
        let (rows, cols) = (factor.len(), gamma.len());
        let blocks = rows.div_ceil(ROWS);
        let partial = work.slice::<f32>(blocks * cols);
        if cols > 0 {
            let sums = Dst::from_slice(partial, &[blocks, cols]);
            let tiles = [(dx.reshape(&[rows, cols]), [Cut::new(0, ROWS)]), (sums, [Cut::new(0, 1)])];
            par_tiles(cx, rows * cols * 6, tiles, |[i], tiles| {
                let [dx, sums] = tiles.map(|t| t.dense());
                let at = i * ROWS;
                cx.simd(
                    #[inline(always)]
                    || {
                        sums.fill(0.0);
                        for (r, dx) in dx.chunks_exact_mut(cols).enumerate() {
                            let [x, dy] = [x, dy].map(|v| &v[(at + r) * cols..][..cols]);
                            row(dx, sums, x, dy, gamma, factor[at + r]);
                        }
                    },
                );
            });
        }
        super::reduce_sum::add_rows(cx, dgamma.dense(), partial, cols, blocks);
    }
}
