//! `linear_cross_entropy`: tiles of logits side by side, each made and summed up in its thread's scratch memory; the
//! sums of a row are joined in the order of the vocabulary. The tiles follow from the extents alone (rule 13).

use super::cross_entropy::log_sum_exp;
use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Mat, Outputs, gemm, par_tiles};
use crate::simd::sums::dot_wide;
use ocelli_ir::ops::LinearCrossEntropy;
use ocelli_ir::{DType, TensorType};

/// Rows of a tile.
pub(super) const ROWS: usize = 128;
/// Words of a tile: with its rows, 256 KB of logits, which fit in a core's second-level cache.
pub(super) const WORDS: usize = 512;

/// The product that a loss is of: hidden `[N, C]`, weight `[V, C]`.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    /// Rows of hidden.
    pub n: usize,
    /// Width.
    pub c: usize,
    /// Words.
    pub v: usize,
    hidden: &'a [f32],
    weight: &'a [f32],
}

impl<'a> Head<'a> {
    pub fn new(ins: Inputs<'a>) -> Self {
        let (hidden, weight) = (ins.get::<f32>(0), ins.get::<f32>(1));
        let (n, c, v) = (hidden.layout.shape()[0], hidden.layout.shape()[1], weight.layout.shape()[0]);
        Self { n, c, v, hidden: hidden.dense(), weight: weight.dense() }
    }

    /// Hidden as a matrix `[N, C]`.
    pub fn hidden(&self) -> Mat<'a> {
        Mat { data: self.hidden, row_stride: self.c, col_stride: 1 }
    }

    /// The weight as a matrix `[V, C]`.
    pub fn weight(&self) -> Mat<'a> {
        Mat { data: self.weight, row_stride: self.c, col_stride: 1 }
    }

    /// The logits `[rows, words]` from a row and a word on.
    pub fn logits(&self, out: &mut Dst<'_, f32>, row: usize, word: usize) {
        let weight = self.weight().skip(word, 0);
        let turned = Mat { row_stride: 1, col_stride: self.c, ..weight };
        gemm(out, false, self.hidden().skip(row, 0), turned, self.c);
    }

    /// One logit in f64, if there is such a word.
    fn logit(&self, cx: &Cx<'_>, row: usize, word: u32) -> Option<f64> {
        let weight = self.weight.chunks_exact(self.c.max(1)).nth(word as usize)?;
        let hidden = &self.hidden[row * self.c..][..self.c];
        Some(cx.simd(
            #[inline(always)]
            || dot_wide(hidden, weight),
        ))
    }
}

/// The logarithm of the sum of exponentials, from those of the parts `[parts, n]`.
fn join(partial: &[f32], n: usize, row: usize) -> f32 {
    let parts = || partial[row..].iter().step_by(n).map(|&x| f64::from(x));
    let max = parts().fold(f64::NEG_INFINITY, f64::max);
    (max + parts().map(|x| (x - max).exp()).sum::<f64>().ln()) as f32
}

impl Kernel for LinearCrossEntropy {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[..2].iter().all(|ty| ty.dtype == DType::F32)
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let (n, v) = (inputs[0].shape[0], inputs[1].shape[0]);
        let sums = v.div_ceil(WORDS).max(1).saturating_mul(n);
        let logits = ROWS.min(n) * WORDS.min(v);
        Needs { scratch: Needs::scratch(logits).scratch, ..Needs::workspace::<f32>(sums) }
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, mut outs: Outputs<'_>) {
        let head = Head::new(ins);
        let (targets, weights) = (ins.dense::<u32>(2), ins.dense::<f32>(3));
        let parts = head.v.div_ceil(WORDS);
        let partial = work.slice::<f32>(parts.max(1) * head.n);
        let cost = (head.n * head.v).saturating_mul(head.c / 8 + 8);
        let sums = Dst::from_slice(&mut partial[..parts * head.n], &[parts, head.n]);
        par_tiles(cx, cost, [(sums, [Cut::new(0, 1), Cut::new(1, ROWS)])], |[part, r], [sums]| {
            let (sums, words) = (sums.dense(), WORDS.min(head.v - part * WORDS));
            cx.scratch(sums.len() * words, |logits| {
                let mut tile = Dst::from_slice(logits, &[sums.len(), words]);
                head.logits(&mut tile, r * ROWS, part * WORDS);
                let logits = tile.dense();
                cx.simd(
                    #[inline(always)]
                    || {
                        for (sum, row) in sums.iter_mut().zip(logits.chunks_exact(words)) {
                            *sum = log_sum_exp(row);
                        }
                    },
                );
            });
        });
        let lse = outs.get::<f32>(1).dense();
        let (sums, few) = (&partial[..parts * head.n], head.n * parts * 16);
        cx.par_fill(lse, few, |i| join(sums, head.n, i));
        // The sums are used up: the terms of the loss take their place.
        let terms = &mut partial[..head.n];
        cx.par_fill(terms, head.n * head.c, |i| match head.logit(cx, i, targets[i]) {
            Some(x) if weights[i] != 0.0 => (f64::from(weights[i]) * (f64::from(lse[i]) - x)) as f32,
            _ => 0.0,
        });
        let loss: f64 = terms.iter().map(|&x| f64::from(x)).sum();
        outs.get::<f32>(0).dense()[0] = loss as f32;
    }
}
