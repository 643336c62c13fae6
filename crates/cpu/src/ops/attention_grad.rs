//! `attention_grad`: one task per sample and key head; the weights are made again from the stored row sums,
//! block by block of query rows, in the thread's scratch memory.

use super::attention::adjacent;
use super::heads::{BLOCK, Head, Heads, carve, padded};
use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Outputs, Src, par_tiles};
use crate::simd::math::exp;
use crate::simd::mm::{Left, Product};
use crate::simd::philox::{row, words};
use crate::simd::sums;
use ocelli_ir::ops::AttentionGrad;
use ocelli_ir::{DType, TensorType, View};

/// Scratch memory of a task.
struct Scratch<'s> {
    /// Keys times the scale, transposed: `[d, pitch]`.
    kt: &'s mut [f32],
    /// Values, transposed: `[d, pitch]`.
    vt: &'s mut [f32],
    /// Keys: `[tk, width]`.
    k: &'s mut [f32],
    /// Gradients of keys and values: `[tk, width]`.
    dk: &'s mut [f32],
    dv: &'s mut [f32],
    /// Queries and output gradients of a block: `[BLOCK, width]`.
    q: &'s mut [f32],
    dy: &'s mut [f32],
    /// Weights of a block with dropout: `[BLOCK, pitch]`.
    p: &'s mut [f32],
    /// Gradients of the weights, then of the scores: `[BLOCK, pitch]`.
    ds: &'s mut [f32],
    /// Gradients of the queries of a block: `[BLOCK, width]`.
    dq: &'s mut [f32],
    /// Dropout decisions of half a block.
    bits: &'s mut [f32],
}

impl<'s> Scratch<'s> {
    fn sizes(tk: usize, d: usize) -> [usize; 11] {
        let (pitch, width) = (padded(tk), padded(d));
        let (cols, rows, block) = (d * pitch, tk * width, BLOCK * width);
        [cols, cols, rows, rows, rows, block, block, BLOCK * pitch, BLOCK * pitch, block, words(pitch / 16)]
    }

    fn new(mut from: &'s mut [f32], sizes: [usize; 11]) -> Self {
        let [kt, vt, k, dk, dv, q, dy, p, ds, dq, bits] = sizes.map(|n| carve(&mut from, n));
        Self { kt, vt, k, dk, dv, q, dy, p, ds, dq, bits }
    }
}

/// The inputs of one query head.
#[derive(Clone, Copy)]
struct Query<'a> {
    b: usize,
    h: usize,
    q: Head<'a>,
    o: Head<'a>,
    dy: Head<'a>,
    lse: &'a [f32],
}

/// What the weights of a row need besides their scores.
#[derive(Clone, Copy)]
struct Row {
    visible: usize,
    lse: f32,
    delta: f32,
    scale: f32,
}

impl Row {
    /// From scores and gradients of the weights, makes weights and gradients of the scores.
    #[inline(always)]
    fn plain(&self, p: &mut [f32], ds: &mut [f32]) {
        for (p, ds) in p[..self.visible].iter_mut().zip(&mut ds[..self.visible]) {
            *p = exp(*p - self.lse);
            *ds = *p * (*ds - self.delta) * self.scale;
        }
        self.hide(p, ds);
    }

    /// The same with dropout: `bits` below the threshold drop a weight, others scale it by `kept`.
    #[inline(always)]
    fn dropout(&self, p: &mut [f32], ds: &mut [f32], bits: &[u16], threshold: u16, kept: f32) {
        let seen = p[..self.visible].iter_mut().zip(&mut ds[..self.visible]);
        for ((p, ds), &b) in seen.zip(bits) {
            let (w, f) = (exp(*p - self.lse), if b >= threshold { kept } else { 0.0 });
            *p = w * f;
            *ds = w * (f * *ds - self.delta) * self.scale;
        }
        self.hide(p, ds);
    }

    #[inline(always)]
    fn hide(&self, p: &mut [f32], ds: &mut [f32]) {
        p[self.visible..].fill(0.0);
        ds[self.visible..].fill(0.0);
    }
}

/// A launch.
#[derive(Clone, Copy)]
struct Grad<'a> {
    cx: &'a Cx<'a>,
    heads: Heads<'a>,
}

impl Grad<'_> {
    /// Packs what all query heads of a key head read, and clears what they add to.
    fn start(&self, m: &mut Scratch<'_>, k: Head<'_>, v: Head<'_>, valid: usize) {
        let Heads { op, pitch, width, .. } = self.heads;
        self.cx.simd(
            #[inline(always)]
            || {
                k.pack_cols(valid, op.scale as f32, pitch, m.kt);
                v.pack_cols(valid, 1.0, pitch, m.vt);
                k.pack_rows(0, width, &mut m.k[..valid * width]);
                m.dk.fill(0.0);
                m.dv.fill(0.0);
            },
        );
    }

    /// Gradients of the query rows `first .. first + rows` of a head, and their share in those of its keys.
    fn block(&self, m: &mut Scratch<'_>, query: &Query<'_>, first: usize, rows: usize) {
        let Heads { op, e, pitch, width, .. } = self.heads;
        let seen = op.visible(first + rows - 1, self.heads.valid(query.b));
        let (n, arch) = (padded(seen), self.cx.arch);
        query.q.pack_rows(first, width, &mut m.q[..rows * width]);
        query.dy.pack_rows(first, width, &mut m.dy[..rows * width]);
        let scores = |c, a, b| Product {
            c,
            c_stride: pitch,
            add: false,
            a: Left::Rows(a, width),
            b,
            b_stride: pitch,
            m: rows,
            n,
            k: e.d,
        };
        scores(&mut *m.p, &*m.q, &*m.kt).run(arch);
        scores(&mut *m.ds, &*m.dy, &*m.vt).run(arch);
        self.cx.simd(
            #[inline(always)]
            || self.weights(m, query, first, rows, n),
        );
        let keys = |c, a, b| Product {
            c,
            c_stride: width,
            add: true,
            a: Left::Cols(a, pitch),
            b,
            b_stride: width,
            m: seen,
            n: width,
            k: rows,
        };
        keys(&mut *m.dv, &*m.p, &*m.dy).run(arch);
        keys(&mut *m.dk, &*m.ds, &*m.q).run(arch);
        let (a, b) = (Left::Rows(m.ds, pitch), &*m.k);
        Product { c: m.dq, c_stride: width, add: false, a, b, b_stride: width, m: rows, n: width, k: seen }
            .run(arch);
    }

    /// Weights and gradients of the scores of a block.
    #[inline(always)]
    fn weights(&self, m: &mut Scratch<'_>, query: &Query<'_>, first: usize, rows: usize, n: usize) {
        let Heads { op, pitch, .. } = self.heads;
        let valid = self.heads.valid(query.b);
        let bits: &mut [u32] = bytemuck::cast_slice_mut(m.bits);
        for i in 0..rows {
            let t = first + i;
            let row_of = Row {
                visible: op.visible(t, valid),
                lse: query.lse[t],
                delta: sums::dot(query.dy.row(t), query.o.row(t)),
                scale: op.scale as f32,
            };
            let (p, ds) = (&mut m.p[i * pitch..][..n], &mut m.ds[i * pitch..][..n]);
            match (op.dropout, self.heads.tile_row(query.b, query.h, t / 16)) {
                (Some(d), Some(at)) => {
                    if i % 16 == 0 {
                        at.bits(n / 16, bits);
                    }
                    row_of.dropout(p, ds, row(bits, n / 16, i % 16), d.threshold, d.scale() as f32);
                }
                _ => row_of.plain(p, ds),
            }
        }
    }
}

fn write(out: &mut Dst<'_, f32>, head: usize, first: usize, rows: usize, from: &[f32], width: usize) {
    for i in 0..rows {
        let line = out.line(&[0, first + i, head]);
        let d = line.len();
        line.copy_from_slice(&from[i * width..][..d]);
    }
}

impl Kernel for AttentionGrad {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn reads(&self, input: usize, view: &View) -> bool {
        input < 6 && input != 4 && adjacent(view)
    }

    fn writes(&self, _: usize, view: &View) -> bool {
        adjacent(view)
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let kv = &inputs[1].shape;
        Needs::scratch(Scratch::sizes(kv[1], kv[3]).iter().sum())
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let heads = Heads::new(&self.forward, ins, 6);
        let [q, k, v, o, dy]: [Src<'_, f32>; 5] = [0, 1, 2, 3, 5].map(|i| ins.get(i));
        let lse = ins.dense::<f32>(4);
        let [dq, dk, dv] = outs.take::<f32, 3>();
        let e = heads.e;
        let (per, sizes) = (e.h / e.g, Scratch::sizes(e.tk, e.d));
        let cut = |heads| [Cut::new(0, 1), Cut::new(2, heads)];
        let work = e.b * e.h * e.tq * e.tk * (e.d / 2 + 8);
        par_tiles(
            cx,
            work,
            [(dq, cut(per)), (dk, cut(1)), (dv, cut(1))],
            |[b, g], [mut dq, mut dk, mut dv]| {
                cx.scratch(sizes.iter().sum(), |scratch| {
                    let (mut m, grad) = (Scratch::new(scratch, sizes), Grad { cx, heads });
                    grad.start(&mut m, Head::new(&k, b, g), Head::new(&v, b, g), heads.valid(b));
                    for (i, h) in (g * per..(g + 1) * per).enumerate() {
                        let [q, o, dy] = [&q, &o, &dy].map(|src| Head::new(src, b, h));
                        let query = Query { b, h, q, o, dy, lse: &lse[(b * e.h + h) * e.tq..][..e.tq] };
                        for first in (0..e.tq).step_by(BLOCK) {
                            let rows = BLOCK.min(e.tq - first);
                            grad.block(&mut m, &query, first, rows);
                            write(&mut dq, i, first, rows, m.dq, heads.width);
                        }
                    }
                    write(&mut dk, 0, 0, e.tk, m.dk, heads.width);
                    write(&mut dv, 0, 0, e.tk, m.dv, heads.width);
                });
            },
        );
    }
}
