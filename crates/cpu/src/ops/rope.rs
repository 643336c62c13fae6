//! `rope`: a table of cosines and sines, made in f64, then rows side by side.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Outputs, par_tiles};
use ocelli_ir::ops::Rope;
use ocelli_ir::{DType, TensorType};

/// Rows of a task.
const ROWS: usize = 32;

/// One head; `table` holds the cosines of its pairs, then their sines.
#[inline(always)]
fn head(y: &mut [f32], x: &[f32], table: &[f32]) {
    let half = x.len() / 2;
    let ((low, high), (cos, sin)) = (x.split_at(half), table.split_at(half));
    let (y_low, y_high) = y.split_at_mut(half);
    let angles = cos.iter().zip(sin);
    for (((y, (&a, &b)), z), (&cos, &sin)) in
        y_low.iter_mut().zip(low.iter().zip(high)).zip(y_high.iter_mut()).zip(angles)
    {
        *y = a * cos - b * sin;
        *z = b * cos + a * sin;
    }
}

/// Fills the table `[positions, d]`.
fn fill(op: &Rope, cx: &Cx<'_>, table: &mut [f32], positions: &[u32], d: usize) {
    let half = d / 2;
    let table = Dst::from_slice(table, &[positions.len(), d]);
    // A cosine and a sine take about as long as a hundred multiplications.
    par_tiles(cx, positions.len() * half * 100, [(table, [Cut::new(0, ROWS)])], |[i], [table]| {
        let table = table.dense();
        for pair in 0..half {
            let frequency = op.frequency(pair, d);
            for (line, &position) in table.chunks_exact_mut(d).zip(&positions[i * ROWS..]) {
                let (cos, sin) = op.turn(position, frequency);
                (line[pair], line[half + pair]) = (cos as f32, sin as f32);
            }
        }
    });
}

impl Kernel for Rope {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let d = inputs[0].shape.last().copied().unwrap_or(0);
        Needs::workspace::<f32>(inputs[1].shape.numel().saturating_mul(d))
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let (x, positions) = (ins.dense::<f32>(0), ins.dense::<u32>(1));
        let [out] = outs.take::<f32, 1>();
        let &[b, t, heads, d] = out.layout().shape() else { return };
        if x.is_empty() {
            return;
        }
        let table = work.slice::<f32>(positions.len() * d);
        fill(self, cx, table, positions, d);
        let (table, width) = (&*table, heads * d);
        let out = out.reshape(&[b * t, width]);
        par_tiles(cx, x.len() * 2, [(out, [Cut::new(0, ROWS)])], |[i], [out]| {
            let out = out.dense();
            cx.simd(
                #[inline(always)]
                || {
                    for (r, y) in out.chunks_exact_mut(width).enumerate() {
                        let row = i * ROWS + r;
                        let table = &table[row % positions.len() * d..][..d];
                        let heads = y.chunks_exact_mut(d).zip(x[row * width..].chunks_exact(d));
                        heads.for_each(
                            #[inline(always)]
                            |(y, x)| head(y, x, table),
                        );
                    }
                },
            );
        });
    }
}
