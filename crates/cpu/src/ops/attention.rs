//! `attention`: one task per sample and head. Blocks of query rows make their scores, weights and outputs in the
//! thread's scratch memory.

use super::heads::{BLOCK, Block, Head, Heads, bits_floats, carve, padded};
use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::layout::Layout;
use crate::mem::{Cut, Dst, Inputs, Outputs, Src, par_tiles};
use crate::simd::math::{exp, ln};
use crate::simd::mm::{Left, Product};
use ocelli_ir::ops::Attention;
use ocelli_ir::{DType, TensorType, View};

/// Weights that are added up in one go; sums of long rows are sums of such sums.
const PART: usize = 64;

/// Scratch memory of a task.
struct Scratch<'s> {
    /// Queries of a block times the scale: `[d, BLOCK]`.
    qt: &'s mut [f32],
    /// Values: `[tk, width]`.
    v: &'s mut [f32],
    /// Scores, then weights, of a block: `[tk, BLOCK]`.
    s: &'s mut [f32],
    /// Outputs of a block: `[BLOCK, width]`.
    o: &'s mut [f32],
    /// Dropout decisions of a block.
    bits: &'s mut [f32],
}

impl<'s> Scratch<'s> {
    fn sizes(tk: usize, d: usize) -> [usize; 5] {
        let width = padded(d);
        [d * BLOCK, tk * width, tk * BLOCK, BLOCK * width, bits_floats(tk)]
    }

    fn new(mut from: &'s mut [f32], sizes: [usize; 5]) -> Self {
        let [qt, v, s, o, bits] = sizes.map(|n| carve(&mut from, n));
        Self { qt, v, s, o, bits }
    }
}

/// Masks scores `[keys, BLOCK]` and returns the largest of each of the first `L` rows.
#[inline(always)]
fn mask<const L: usize>(s: &mut [f32], visible: &[u32; BLOCK]) -> [f32; BLOCK] {
    let mut max = [f32::NEG_INFINITY; BLOCK];
    for (j, s) in s.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        for i in 0..L {
            let x = if (j as u32) < visible[i] { s[i] } else { f32::NEG_INFINITY };
            s[i] = x;
            max[i] = if x > max[i] { x } else { max[i] };
        }
    }
    max
}

/// Turns masked scores of the first `L` rows into unnormalised weights and returns the sums.
#[inline(always)]
fn exponentials<const L: usize>(s: &mut [f32], max: &[f32; BLOCK]) -> [f32; BLOCK] {
    let mut sums = [0.0; BLOCK];
    for part in s.chunks_mut(PART * BLOCK) {
        let mut sum = [0.0; BLOCK];
        for s in part.as_chunks_mut::<BLOCK>().0 {
            for i in 0..L {
                s[i] = exp(s[i] - max[i]);
                sum[i] += s[i];
            }
        }
        for i in 0..BLOCK {
            sums[i] += sum[i];
        }
    }
    sums
}

/// Zeroes the weights that dropout drops.
#[inline(always)]
fn drop_weights(s: &mut [f32], bits: &[u16], threshold: u16) {
    for (s, &b) in s.iter_mut().zip(bits) {
        *s = if b >= threshold { *s } else { 0.0 };
    }
}

/// The heads of one task.
struct Task<'a> {
    heads: Heads<'a>,
    q: Head<'a>,
    k: Head<'a>,
    v: Head<'a>,
}

impl Task<'_> {
    /// Outputs of a block, not normalised, to `m.o`; returns the sums of the weights.
    fn block(&self, cx: &Cx<'_>, m: &mut Scratch<'_>, block: &Block, lse: &mut [f32]) -> [f32; BLOCK] {
        let Heads { op, e, width, .. } = self.heads;
        let (keys, lanes) = (block.keys, padded(block.rows));
        cx.simd(
            #[inline(always)]
            || self.heads.pack_lanes(&self.q, block, op.scale as f32, m.qt),
        );
        let (a, b) = (Left::Rows(self.k.data, self.k.stride), &*m.qt);
        Product { c: m.s, c_stride: BLOCK, add: false, a, b, b_stride: BLOCK, m: keys, n: lanes, k: e.d }
            .run(cx.arch);
        let sums = cx.simd(
            #[inline(always)]
            || {
                let s = &mut m.s[..keys * BLOCK];
                let (max, sums) = if lanes == BLOCK {
                    let max = mask::<BLOCK>(s, &block.visible);
                    (max, exponentials::<BLOCK>(s, &max))
                } else {
                    let max = mask::<16>(s, &block.visible);
                    (max, exponentials::<16>(s, &max))
                };
                for ((lse, &max), &sum) in lse.iter_mut().zip(&max).zip(&sums) {
                    *lse = if sum > 0.0 { max + ln(sum) } else { 0.0 };
                }
                if let Some((bits, threshold)) = self.heads.decisions(block, m.bits) {
                    drop_weights(s, bits, threshold);
                }
                sums
            },
        );
        let (b, b_stride) = self.v.rows(0, width, &mut m.v[..keys * width]);
        let (a, c, rows) = (Left::Cols(m.s, BLOCK), &mut *m.o, block.rows);
        Product { c, c_stride: width, add: false, a, b, b_stride, m: rows, n: width, k: keys }.run(cx.arch);
        sums
    }

    /// Writes the outputs of a block, normalised.
    fn write(&self, cx: &Cx<'_>, o: &[f32], sums: &[f32; BLOCK], block: &Block, out: &mut Dst<'_, f32>) {
        cx.simd(
            #[inline(always)]
            || {
                for (i, &sum) in sums[..block.rows].iter().enumerate() {
                    let factor = if sum > 0.0 { self.heads.kept / sum } else { 0.0 };
                    let line = out.line(&[0, block.first + i, 0]);
                    for (out, &o) in line.iter_mut().zip(&o[i * self.heads.width..]) {
                        *out = o * factor;
                    }
                }
            },
        );
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
        let work = (e.b * e.h * e.tq).saturating_mul(e.tk).saturating_mul(e.d / 4 + 4);
        let cuts = [(o, [Cut::new(0, 1), Cut::new(2, 1)]), (lse, [Cut::new(0, 1), Cut::new(1, 1)])];
        par_tiles(cx, work, cuts, |[b, h], [mut o, lse]| {
            let (g, lse) = (h / (e.h / e.g), lse.dense());
            let task = Task { heads, q: Head::new(&q, b, h), k: Head::new(&k, b, g), v: Head::new(&v, b, g) };
            cx.scratch(sizes.iter().sum(), |scratch| {
                let mut m = Scratch::new(scratch, sizes);
                for first in (0..e.tq).step_by(BLOCK) {
                    let block = heads.block(b, h, first);
                    let sums = task.block(cx, &mut m, &block, &mut lse[first..first + block.rows]);
                    task.write(cx, m.o, &sums, &block, &mut o);
                }
            });
        });
    }
}
