//! `layer_norm_grad`: one pass over blocks of rows; each block's share of dgamma and dbeta goes to the workspace
//! and is added up in the order of the blocks.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Outputs, par_tiles};
use crate::simd::sums::sum_wide;
use ocelli_ir::TensorType;
use ocelli_ir::ops::LayerNormGrad;

/// Rows of a block.
const ROWS: usize = 32;

/// Inputs of a block of rows.
#[derive(Clone, Copy)]
struct Block<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    gamma: &'a [f32],
    mean: &'a [f32],
    rstd: &'a [f32],
}

impl Block<'_> {
    #[inline(always)]
    fn run(&self, dx: &mut [f32], sums: &mut [f32]) {
        let cols = self.gamma.len();
        let (dgamma, dbeta) = sums.split_at_mut(cols);
        dgamma.fill(0.0);
        dbeta.fill(0.0);
        let rows = dx.chunks_exact_mut(cols).zip(self.x.chunks_exact(cols)).zip(self.dy.chunks_exact(cols));
        for (((dx, x), dy), (&mean, &rstd)) in rows.zip(self.mean.iter().zip(self.rstd)) {
            self.row(dx, x, dy, mean, rstd);
            let sums = dgamma.iter_mut().zip(dbeta.iter_mut());
            for (((dg, db), &x), &dy) in sums.zip(x).zip(dy) {
                *dg = (dy * rstd).mul_add(x - mean, *dg);
                *db += dy;
            }
        }
    }

    #[inline(always)]
    fn row(&self, dx: &mut [f32], x: &[f32], dy: &[f32], mean: f32, rstd: f32) {
        let n = self.gamma.len() as f64;
        // t goes to dx first, then h t through it.
        for ((t, &dy), &g) in dx.iter_mut().zip(dy).zip(self.gamma) {
            *t = dy * g;
        }
        let mean_t = (sum_wide(dx) / n) as f32;
        let mean_th = (dot_wide(dx, x, mean, rstd) / n) as f32;
        for (t, &x) in dx.iter_mut().zip(x) {
            let h = (x - mean) * rstd;
            *t = rstd * (*t - mean_t - h * mean_th);
        }
    }
}

/// `sum(t (x - mean) rstd)` in f64, over fixed lanes.
#[inline(always)]
fn dot_wide(t: &[f32], x: &[f32], mean: f32, rstd: f32) -> f64 {
    const LANES: usize = crate::simd::sums::LANES;
    let mut acc = [0.0f64; LANES];
    let ((ts, t_rest), (xs, x_rest)) = (t.as_chunks::<LANES>(), x.as_chunks::<LANES>());
    for (t, x) in ts.iter().zip(xs) {
        for ((a, &t), &x) in acc.iter_mut().zip(t).zip(x) {
            *a += f64::from(t * ((x - mean) * rstd));
        }
    }
    for ((a, &t), &x) in acc.iter_mut().zip(t_rest).zip(x_rest) {
        *a += f64::from(t * ((x - mean) * rstd));
    }
    acc.iter().sum()
}

impl Kernel for LayerNormGrad {
    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let (rows, cols) = inputs[0].shape.rows();
        Needs::workspace::<f32>(rows.div_ceil(ROWS).saturating_mul(2 * cols))
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [x, gamma, mean, rstd, dy] = [0, 1, 2, 3, 4].map(|i| ins.dense::<f32>(i));
        let [dx, dgamma, dbeta] = outs.take::<f32, 3>();
        let (rows, cols) = (mean.len(), gamma.len());
        let blocks = rows.div_ceil(ROWS);
        let partial = work.slice::<f32>(blocks * 2 * cols);
        if cols > 0 {
            let sums = Dst::from_slice(partial, &[blocks, 2 * cols]);
            let tiles = [(dx.reshape(&[rows, cols]), [Cut::new(0, ROWS)]), (sums, [Cut::new(0, 1)])];
            par_tiles(cx, rows * cols * 8, tiles, |[i], tiles| {
                let [dx, sums] = tiles.map(|t| t.dense());
                let (at, n) = (i * ROWS, dx.len() / cols);
                let cut = |v| -> &[f32] { &<[f32]>::as_ref(v)[at * cols..][..n * cols] };
                let block =
                    Block { x: cut(x), dy: cut(dy), gamma, mean: &mean[at..at + n], rstd: &rstd[at..at + n] };
                cx.simd(
                    #[inline(always)]
                    || block.run(dx, sums),
                );
            });
        }
        for (out, first) in [(dgamma, 0), (dbeta, cols)] {
            super::reduce_sum::add_rows(
                cx,
                out.dense(),
                &partial[first.min(partial.len())..],
                2 * cols,
                blocks,
            );
        }
    }
}
