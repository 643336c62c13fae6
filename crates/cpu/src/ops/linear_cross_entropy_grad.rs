//! `linear_cross_entropy_grad`: the vocabulary in chunks. For each, the gradient of its logits goes to the workspace
//! tile by tile, and from there into dweight and onto dhidden. Chunks and tiles follow from the extents alone
//! (rule 13), and no more logits than [`ROOM`] are in memory, or 64 words of each row.

use super::cross_entropy_grad::row;
use super::linear_cross_entropy::{Head, ROWS, WORDS};
use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Mat, Outputs, gemm, par_tiles};
use ocelli_ir::ops::LinearCrossEntropyGrad;
use ocelli_ir::{DType, TensorType};

/// Logits in the workspace: 8 MB.
const ROOM: usize = 1 << 21;
/// Words of a tile of dweight.
const TILE: usize = 48;

/// Words of a chunk.
fn chunk(n: usize, v: usize) -> usize {
    (ROOM / n.max(1) / 64 * 64).max(64).min(v)
}

/// What the gradient of the logits is made of beside them.
#[derive(Clone, Copy)]
struct Loss<'a> {
    targets: &'a [u32],
    weights: &'a [f32],
    lse: &'a [f32],
    dloss: f32,
}

impl Loss<'_> {
    /// Turns the logits `[rows, words]` from row `first` and word `from` on into their gradient.
    fn differentiate(&self, cx: &Cx<'_>, tile: &mut Dst<'_, f32>, first: usize, from: usize, v: usize) {
        let rows = tile.layout().shape()[0];
        cx.simd(
            #[inline(always)]
            || {
                for r in 0..rows {
                    let (i, logits) = (first + r, tile.line(&[r]));
                    // A row of weight 0 gives 0 even if dloss is infinite.
                    let learnt = self.weights[i] != 0.0 && (self.targets[i] as usize) < v;
                    let factor = if learnt { self.dloss * self.weights[i] } else { 0.0 };
                    row(logits, (self.targets[i] as usize).checked_sub(from), factor, self.lse[i]);
                }
            },
        );
    }
}

impl Kernel for LinearCrossEntropyGrad {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[..2].iter().all(|ty| ty.dtype == DType::F32)
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let (n, v) = (inputs[0].shape[0], inputs[1].shape[0]);
        Needs::workspace::<f32>(n.saturating_mul(chunk(n, v)))
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let head = Head::new(ins);
        let Head { n, c, v, .. } = head;
        let (targets, weights) = (ins.dense::<u32>(2), ins.dense::<f32>(3));
        let loss = Loss { targets, weights, lse: ins.dense(4), dloss: ins.scalar(5) };
        let [mut dhidden, mut dweight] = outs.take::<f32, 2>();
        if n * v * c == 0 {
            return [dhidden, dweight].iter_mut().for_each(|out| out.fill(0.0));
        }
        let chunk = chunk(n, v);
        for from in (0..v).step_by(chunk) {
            let words = chunk.min(v - from);
            let cost = (n * words).saturating_mul(c / 8 + 2);
            let d = work.slice::<f32>(n * words);
            let tiles = Dst::from_slice(d, &[n, words]);
            par_tiles(cx, cost, [(tiles, [Cut::new(0, ROWS), Cut::new(1, WORDS)])], |[r, w], [mut tile]| {
                let (first, from) = (r * ROWS, from + w * WORDS);
                head.logits(&mut tile, first, from);
                loss.differentiate(cx, &mut tile, first, from, v);
            });
            let d = Mat { data: d, row_stride: words, col_stride: 1 };
            let part = dweight.reborrow().narrow(0, from, words);
            par_tiles(cx, cost, [(part, [Cut::new(0, TILE)])], |[i], [mut out]| {
                let turned = Mat { row_stride: 1, col_stride: words, ..d.skip(0, i * TILE) };
                gemm(&mut out, false, turned, head.hidden(), n);
            });
            par_tiles(cx, cost, [(dhidden.reborrow(), [Cut::new(0, ROWS)])], |[i], [mut out]| {
                gemm(&mut out, from > 0, d.skip(i * ROWS, 0), head.weight().skip(from, 0), words);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocelli_ir::ops::LinearCrossEntropy;

    /// The published step of a small decoder, and a batch of long texts.
    #[test]
    fn no_more_than_a_small_part_of_the_logits_is_in_memory() {
        let v = 49_152;
        for n in [1024, 16_384] {
            let types = [TensorType::f32([n, 576]), TensorType::f32([v, 576])];
            for needs in [LinearCrossEntropy.needs(&types), LinearCrossEntropyGrad.needs(&types)] {
                let all = n * v * size_of::<f32>();
                assert!(needs.workspace + 2 * needs.scratch < all / 20, "{needs:?} of {all}");
            }
        }
        assert_eq!([chunk(1024, v), chunk(1 << 20, v), chunk(10, 78), chunk(0, 0)], [2048, 64, 78, 0]);
    }
}
