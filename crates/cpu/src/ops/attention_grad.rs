//! `attention_grad`: one task per sample and key head; the weights are made again from the stored row sums,
//! block by block of query rows, in the thread's scratch memory.

use super::attention::adjacent;
use super::heads::{BLOCK, Block, Head, Heads, bits_floats, carve, padded};
use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Outputs, Src, par_tiles};
use crate::simd::math::exp;
use crate::simd::mm::{Left, Product};
use ocelli_ir::ops::AttentionGrad;
use ocelli_ir::{DType, TensorType, View};

/// Scratch memory of a task.
struct Scratch<'s> {
    /// Keys, and gradients of keys and values: `[tk, width]`.
    k: &'s mut [f32],
    dk: &'s mut [f32],
    dv: &'s mut [f32],
    /// Queries of a block (times the scale), output gradients and outputs: `[d, BLOCK]`.
    qt: &'s mut [f32],
    dyt: &'s mut [f32],
    ot: &'s mut [f32],
    /// Queries or output gradients of a block, and the gradients of its queries: `[BLOCK, width]`.
    rows: &'s mut [f32],
    dq: &'s mut [f32],
    /// Weights of a block with dropout: `[tk, BLOCK]`.
    p: &'s mut [f32],
    /// Gradients of the weights, then of the scores: `[tk, BLOCK]`.
    ds: &'s mut [f32],
    /// Dropout decisions of a block.
    bits: &'s mut [f32],
}

impl<'s> Scratch<'s> {
    fn sizes(tk: usize, d: usize) -> [usize; 11] {
        let (rows, lanes, block, scores) = (tk * padded(d), d * BLOCK, BLOCK * padded(d), tk * BLOCK);
        [rows, rows, rows, lanes, lanes, lanes, block, block, scores, scores, bits_floats(tk)]
    }

    fn new(mut from: &'s mut [f32], sizes: [usize; 11]) -> Self {
        let [k, dk, dv, qt, dyt, ot, rows, dq, p, ds, bits] = sizes.map(|n| carve(&mut from, n));
        Self { k, dk, dv, qt, dyt, ot, rows, dq, p, ds, bits }
    }
}

/// One query head and its key head.
#[derive(Clone, Copy)]
struct Query<'a> {
    q: Head<'a>,
    o: Head<'a>,
    dy: Head<'a>,
    k: Head<'a>,
    v: Head<'a>,
    lse: &'a [f32],
}

/// What the weights of each row of a block need besides their scores.
struct Rows {
    visible: [u32; BLOCK],
    lse: [f32; BLOCK],
    delta: [f32; BLOCK],
    scale: f32,
}

impl Rows {
    /// From scores and gradients of the weights, makes weights and gradients of the scores.
    #[inline(always)]
    fn plain<const L: usize>(&self, p: &mut [f32], ds: &mut [f32]) {
        let keys = p.as_chunks_mut::<BLOCK>().0.iter_mut().zip(ds.as_chunks_mut::<BLOCK>().0);
        for (j, (p, ds)) in keys.enumerate() {
            for i in 0..L {
                let w = if (j as u32) < self.visible[i] { exp(p[i] - self.lse[i]) } else { 0.0 };
                p[i] = w;
                ds[i] = w * (ds[i] - self.delta[i]) * self.scale;
            }
        }
    }

    /// The same with dropout: `bits` below the threshold drop a weight, others scale it by `kept`.
    #[inline(always)]
    fn dropout<const L: usize>(&self, p: &mut [f32], ds: &mut [f32], decisions: (&[u16], u16), kept: f32) {
        let (bits, threshold) = decisions;
        let keys = p.as_chunks_mut::<BLOCK>().0.iter_mut().zip(ds.as_chunks_mut::<BLOCK>().0);
        for (j, ((p, ds), bits)) in keys.zip(bits.as_chunks::<BLOCK>().0).enumerate() {
            for i in 0..L {
                let w = if (j as u32) < self.visible[i] { exp(p[i] - self.lse[i]) } else { 0.0 };
                let f = if bits[i] >= threshold { kept } else { 0.0 };
                p[i] = w * f;
                ds[i] = w * (f * ds[i] - self.delta[i]) * self.scale;
            }
        }
    }
}

/// A launch.
#[derive(Clone, Copy)]
struct Grad<'a> {
    cx: &'a Cx<'a>,
    heads: Heads<'a>,
}

impl Grad<'_> {
    /// Gradients of the query rows of a block, to `m.dq`, and their share in those of its keys.
    fn block(&self, m: &mut Scratch<'_>, query: &Query<'_>, block: &Block) {
        let Heads { e, width, .. } = self.heads;
        let (arch, Block { rows, keys, .. }) = (self.cx.arch, *block);
        let rows_of = self.pack(m, query, block);
        let scores = |c, head: &Head<'_>, b| {
            let (a, n) = (Left::Rows(head.data, head.stride), padded(rows));
            Product { c, c_stride: BLOCK, add: false, a, b, b_stride: BLOCK, m: keys, n, k: e.d }.run(arch);
        };
        scores(&mut *m.p, &query.k, &*m.qt);
        scores(&mut *m.ds, &query.v, &*m.dyt);
        self.cx.simd(
            #[inline(always)]
            || {
                let (p, ds) = (&mut m.p[..keys * BLOCK], &mut m.ds[..keys * BLOCK]);
                match (self.heads.decisions(block, m.bits), rows > 16) {
                    (Some(d), true) => rows_of.dropout::<BLOCK>(p, ds, d, self.heads.kept),
                    (Some(d), false) => rows_of.dropout::<16>(p, ds, d, self.heads.kept),
                    (None, true) => rows_of.plain::<BLOCK>(p, ds),
                    (None, false) => rows_of.plain::<16>(p, ds),
                }
            },
        );
        let room = &mut m.rows[..rows * width];
        self.add_share(&mut *m.dv, &*m.p, query.dy.rows(block.first, width, room), block);
        self.add_share(&mut *m.dk, &*m.ds, query.q.rows(block.first, width, room), block);
        let (b, b_stride) = query.k.rows(0, width, &mut m.k[..keys * width]);
        let (a, c) = (Left::Cols(m.ds, BLOCK), &mut *m.dq);
        Product { c, c_stride: width, add: false, a, b, b_stride, m: rows, n: width, k: keys }.run(arch);
    }

    /// Adds the share of a block to the gradients of its keys: `[keys, rows]` times `[rows, width]`.
    fn add_share(&self, c: &mut [f32], a: &[f32], (b, b_stride): (&[f32], usize), block: &Block) {
        let (a, width) = (Left::Rows(a, BLOCK), self.heads.width);
        let (m, k) = (block.keys, block.rows);
        Product { c, c_stride: width, add: true, a, b, b_stride, m, n: width, k }.run(self.cx.arch);
    }

    /// Packs the rows of a block.
    fn pack(&self, m: &mut Scratch<'_>, query: &Query<'_>, block: &Block) -> Rows {
        let op = self.heads.op;
        let mut lse = [0.0; BLOCK];
        lse[..block.rows].copy_from_slice(&query.lse[block.first..][..block.rows]);
        let mut out = Rows { visible: block.visible, lse, delta: [0.0; BLOCK], scale: op.scale as f32 };
        self.cx.simd(
            #[inline(always)]
            || {
                self.heads.pack_lanes(&query.q, block, op.scale as f32, m.qt);
                self.heads.pack_lanes(&query.dy, block, 1.0, m.dyt);
                self.heads.pack_lanes(&query.o, block, 1.0, m.ot);
                let mut delta = [0.0; BLOCK];
                for (dy, o) in m.dyt.as_chunks::<BLOCK>().0.iter().zip(m.ot.as_chunks::<BLOCK>().0) {
                    for i in 0..BLOCK {
                        delta[i] = dy[i].mul_add(o[i], delta[i]);
                    }
                }
                out.delta = delta;
            },
        );
        out
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
        let work = (e.b * e.h * e.tq).saturating_mul(e.tk).saturating_mul(e.d / 2 + 8);
        par_tiles(
            cx,
            work,
            [(dq, cut(per)), (dk, cut(1)), (dv, cut(1))],
            |[b, g], [mut dq, mut dk, mut dv]| {
                cx.scratch(sizes.iter().sum(), |scratch| {
                    let (mut m, grad) = (Scratch::new(scratch, sizes), Grad { cx, heads });
                    let (k, v) = (Head::new(&k, b, g), Head::new(&v, b, g));
                    m.dk.fill(0.0);
                    m.dv.fill(0.0);
                    for (i, h) in (g * per..(g + 1) * per).enumerate() {
                        let [q, o, dy] = [&q, &o, &dy].map(|src| Head::new(src, b, h));
                        let query = Query { q, o, dy, k, v, lse: &lse[(b * e.h + h) * e.tq..][..e.tq] };
                        for first in (0..e.tq).step_by(BLOCK) {
                            let block = heads.block(b, h, first);
                            grad.block(&mut m, &query, &block);
                            write(&mut dq, i, first, block.rows, m.dq, heads.width);
                        }
                    }
                    write(&mut dk, 0, 0, e.tk, m.dk, heads.width);
                    write(&mut dv, 0, 0, e.tk, m.dv, heads.width);
                });
            },
        );
    }
}
