//! `attention`: one task per sample and head. Keys and values of the head are packed once; blocks of query rows
//! then make their scores, weights and outputs in the thread's scratch memory.

use super::heads::{BLOCK, Head, Heads, carve, padded};
use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::layout::Layout;
use crate::mem::{Cut, Dst, Inputs, Outputs, Src, par_tiles};
use crate::simd::math::exp;
use crate::simd::mm::{Left, Product};
use crate::simd::philox::{row, words};
use crate::simd::sums;
use ocelli_ir::ops::Attention;
use ocelli_ir::{DType, TensorType, View};

/// Scratch memory of a task.
struct Scratch<'s> {
    /// Keys times the scale, transposed: `[d, pitch]`.
    kt: &'s mut [f32],
    /// Values: `[tk, width]`.
    v: &'s mut [f32],
    /// Scores, then weights, of a block: `[BLOCK, pitch]`.
    s: &'s mut [f32],
    /// Outputs of a block: `[BLOCK, width]`.
    o: &'s mut [f32],
    /// Sums of exponentials of a block.
    sums: &'s mut [f32],
    /// Dropout decisions of half a block.
    bits: &'s mut [f32],
}

impl<'s> Scratch<'s> {
    fn sizes(tk: usize, d: usize) -> [usize; 6] {
        let (pitch, width) = (padded(tk), padded(d));
        [d * pitch, tk * width, BLOCK * pitch, BLOCK * width, BLOCK, words(pitch / 16)]
    }

    fn new(mut from: &'s mut [f32], sizes: [usize; 6]) -> Self {
        let [kt, v, s, o, sums, bits] = sizes.map(|n| carve(&mut from, n));
        Self { kt, v, s, o, sums, bits }
    }
}

/// Turns the scores of a row into unnormalised weights; returns their sum and the logarithm of it.
#[inline(always)]
fn exponentials(s: &mut [f32], visible: usize) -> (f32, f32) {
    if visible == 0 {
        s.fill(0.0);
        return (0.0, 0.0);
    }
    let (seen, unseen) = s.split_at_mut(visible);
    unseen.fill(0.0);
    let max = sums::max(seen);
    for s in seen.iter_mut() {
        *s = exp(*s - max);
    }
    let sum = sums::sum(seen);
    (sum, max + sum.ln())
}

/// One sample and head.
struct Task<'a> {
    heads: Heads<'a>,
    b: usize,
    h: usize,
    q: Head<'a>,
}

impl Task<'_> {
    fn run(
        &self,
        cx: &Cx<'_>,
        m: &mut Scratch<'_>,
        k: Head<'_>,
        v: Head<'_>,
        o: Dst<'_, f32>,
        lse: &mut [f32],
    ) {
        let Heads { op, e, pitch, width, .. } = self.heads;
        let valid = self.heads.valid(self.b);
        cx.simd(
            #[inline(always)]
            || {
                k.pack_cols(valid, op.scale as f32, pitch, m.kt);
                v.pack_rows(0, width, &mut m.v[..valid * width]);
            },
        );
        let mut o = o;
        for first in (0..e.tq).step_by(BLOCK) {
            let rows = BLOCK.min(e.tq - first);
            self.block(cx, m, first, &mut lse[first..first + rows]);
            for i in 0..rows {
                o.line(&[0, first + i, 0]).copy_from_slice(&m.o[i * width..][..e.d]);
            }
        }
    }

    /// Outputs of the query rows `first ..`, one for each element of `lse`.
    fn block(&self, cx: &Cx<'_>, m: &mut Scratch<'_>, first: usize, lse: &mut [f32]) {
        let Heads { op, e, pitch, width, .. } = self.heads;
        let (rows, valid) = (lse.len(), self.heads.valid(self.b));
        let seen = op.visible(first + rows - 1, valid);
        let (n, q) = (padded(seen), &self.q.data[first * self.q.stride..]);
        let (a, b) = (Left::Rows(q, self.q.stride), &*m.kt);
        Product { c: m.s, c_stride: pitch, add: false, a, b, b_stride: pitch, m: rows, n, k: e.d }
            .run(cx.arch);
        cx.simd(
            #[inline(always)]
            || {
                for (i, lse) in lse.iter_mut().enumerate() {
                    let visible = op.visible(first + i, valid);
                    (m.sums[i], *lse) = exponentials(&mut m.s[i * pitch..][..n], visible);
                }
                self.dropout(m, first, rows, n / 16);
            },
        );
        let (a, b) = (Left::Rows(m.s, pitch), &*m.v);
        Product { c: m.o, c_stride: width, add: false, a, b, b_stride: width, m: rows, n: width, k: seen }
            .run(cx.arch);
        let kept = op.dropout.map_or(1.0, |d| d.scale() as f32);
        for (o, &sum) in m.o.chunks_exact_mut(width).zip(&m.sums[..rows]) {
            let factor = if sum > 0.0 { kept / sum } else { 0.0 };
            o.iter_mut().for_each(|o| *o *= factor);
        }
    }

    /// Zeroes the weights that dropout drops.
    #[inline(always)]
    fn dropout(&self, m: &mut Scratch<'_>, first: usize, rows: usize, tiles: usize) {
        let Some(d) = self.heads.op.dropout else { return };
        let pitch = self.heads.pitch;
        let bits: &mut [u32] = bytemuck::cast_slice_mut(m.bits);
        for half in (0..rows).step_by(16) {
            let Some(at) = self.heads.tile_row(self.b, self.h, (first + half) / 16) else { return };
            at.bits(tiles, bits);
            for r in 0..16.min(rows - half) {
                let s = &mut m.s[(half + r) * pitch..];
                for (s, &b) in s.iter_mut().zip(row(bits, tiles, r)) {
                    *s = if b >= d.threshold { *s } else { 0.0 };
                }
            }
        }
    }
}

/// True for views whose last axis has adjacent elements.
pub fn adjacent(view: &View) -> bool {
    view.shape.len() == 4 && Layout::of(view).last_stride() == 1
}

impl Kernel for Attention {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn reads(&self, input: usize, view: &View) -> bool {
        input < 3 && adjacent(view)
    }

    fn writes(&self, output: usize, view: &View) -> bool {
        output == 0 && adjacent(view)
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let kv = &inputs[1].shape;
        Needs::scratch(Scratch::sizes(kv[1], kv[3]).iter().sum())
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let heads = Heads::new(self, ins, 3);
        let [q, k, v]: [Src<'_, f32>; 3] = [0, 1, 2].map(|i| ins.get(i));
        let [o, lse] = outs.take::<f32, 2>();
        let e = heads.e;
        let sizes = Scratch::sizes(e.tk, e.d);
        let work = e.b * e.h * e.tq * e.tk * (e.d / 4 + 4);
        let cuts = [(o, [Cut::new(0, 1), Cut::new(2, 1)]), (lse, [Cut::new(0, 1), Cut::new(1, 1)])];
        par_tiles(cx, work, cuts, |[b, h], [o, lse]| {
            let g = h / (e.h / e.g);
            let task = Task { heads, b, h, q: Head::new(&q, b, h) };
            cx.scratch(sizes.iter().sum(), |scratch| {
                let mut m = Scratch::new(scratch, sizes);
                task.run(cx, &mut m, Head::new(&k, b, g), Head::new(&v, b, g), o, lse.dense());
            });
        });
    }
}
