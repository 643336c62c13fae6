//! What attention and its gradient share: where each head lies, what each query sees, which weights dropout
//! keeps, and packing.
//!
//! Scores and weights of a block of queries lie key by key, the queries of the block side by side in vector
//! lanes: `[keys, BLOCK]`. So the largest score, the sum of a row and the mask need no sum across lanes.

use crate::mem::{Inputs, Src};
use crate::simd::mm::COLS;
use crate::simd::philox::TileRow;
use crate::simd::transpose::{Shuffle, transpose};
use ocelli_ir::ops::{Attention, AttentionExtents};

/// Query rows that a task takes at a time: two of dropout's tiles.
pub const BLOCK: usize = 32;

/// Rounds up to what the small products take.
pub const fn padded(n: usize) -> usize {
    n.next_multiple_of(COLS)
}

/// Floats that hold the dropout decisions (16 bits each) of a block and `tk` keys.
pub const fn bits_floats(tk: usize) -> usize {
    padded(tk) * BLOCK / 2
}

/// Dropout of one launch.
#[derive(Clone, Copy, Debug)]
struct Keys<'a> {
    key: [u32; 2],
    step: u32,
    samples: &'a [u32],
    threshold: u16,
}

/// The inputs that forward and gradient have in common.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// The op, or the one whose gradient is taken.
    pub op: &'a Attention,
    /// Extents.
    pub e: AttentionExtents,
    /// Width of a head rounded up.
    pub width: usize,
    /// What kept weights are multiplied by: 1 without dropout.
    pub kept: f32,
    shuffle: Shuffle,
    lens: Option<&'a [u32]>,
    keys: Option<Keys<'a>>,
}

impl<'a> Heads<'a> {
    /// From the op and its inputs, of which those from `extras` on are lengths and dropout keys.
    ///
    /// # Panics
    /// If the shapes do not fit; the shape rule has seen to that.
    pub fn new(op: &'a Attention, ins: Inputs<'a>, extras: usize) -> Self {
        let shape = |i| ins.get::<f32>(i).layout;
        let e = match op.extents(shape(0).shape(), shape(1).shape(), shape(2).shape()) {
            Ok(e) => e,
            Err(m) => unreachable!("checked when the plan was loaded: {m}"),
        };
        let lens = op.kv_len.then(|| ins.dense::<u32>(extras));
        let first = extras + usize::from(op.kv_len);
        let keys = op.dropout.map(|d| {
            let seed = ins.dense::<u32>(first);
            let (key, samples) = (d.key([seed[0], seed[1]]), ins.dense(first + 2));
            Keys { key, step: ins.scalar(first + 1), samples, threshold: d.threshold }
        });
        let kept = op.dropout.map_or(1.0, |d| d.scale() as f32);
        Self { op, e, width: padded(e.d), kept, shuffle: Shuffle::new(), lens, keys }
    }

    /// The block of query rows `first ..` of a head.
    pub fn block(&self, b: usize, h: usize, first: usize) -> Block {
        let valid = self.lens.map_or(self.e.tk, |lens| (lens[b] as usize).min(self.e.tk));
        let rows = BLOCK.min(self.e.tq - first);
        let visible = std::array::from_fn(|i| self.op.visible(first + i.min(rows - 1), valid) as u32);
        Block { b, h, first, rows, keys: visible[rows - 1] as usize, visible }
    }

    /// Writes the dropout decisions of a block, `[keys, BLOCK]`, and returns them with the threshold below which a
    /// weight is dropped.
    #[inline(always)]
    pub fn decisions<'w>(&self, block: &Block, out: &'w mut [f32]) -> Option<(&'w [u16], u16)> {
        let keys = self.keys?;
        let out: &mut [u16] = bytemuck::cast_slice_mut(out);
        for half in (0..block.rows).step_by(16) {
            let (sample, tile_row) = (keys.samples[block.b], (block.first + half) / 16);
            let at = TileRow { key: keys.key, step: keys.step, sample, plane: block.h, tile_row };
            at.columns(block.keys.div_ceil(16), &mut out[half..], BLOCK);
        }
        Some((out, keys.threshold))
    }

    /// The rows of a block times `factor`, transposed: `[d, BLOCK]`. Lanes behind the last row hold anything.
    #[inline(always)]
    pub fn pack_lanes(&self, head: &Head<'_>, block: &Block, factor: f32, out: &mut [f32]) {
        let from = &head.data[block.first * head.stride..];
        transpose(self.shuffle, from, head.stride, block.rows, out, BLOCK);
        for o in out {
            *o *= factor;
        }
    }
}

/// Some query rows of one head.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Sample.
    pub b: usize,
    /// Query head.
    pub h: usize,
    /// First row.
    pub first: usize,
    /// Number of rows, at most [`BLOCK`].
    pub rows: usize,
    /// Keys that any of them sees.
    pub keys: usize,
    /// Keys that each of them sees.
    pub visible: [u32; BLOCK],
}

/// One head of a `[B, T, heads, D]` tensor with adjacent elements in the last axis.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// From the head's first element on.
    pub data: &'a [f32],
    /// Distance between rows.
    pub stride: usize,
    d: usize,
}

impl<'a> Head<'a> {
    /// Head `h` of sample `b`.
    pub fn new(src: &Src<'a, f32>, b: usize, h: usize) -> Self {
        let (n, s) = (src.layout.shape(), src.layout.strides());
        Self { data: src.data.get(b * s[0] + h * s[2]..).unwrap_or(&[]), stride: s[1], d: n[3] }
    }

    /// Rows from `first` on, as many as fill `room` at this width, and the distance between them: as they lie if
    /// they are that wide, else copied to `room` and padded with zeros.
    pub fn rows<'r>(&self, first: usize, width: usize, room: &'r mut [f32]) -> (&'r [f32], usize)
    where
        'a: 'r,
    {
        if self.d == width {
            return (&self.data[first * self.stride..], self.stride);
        }
        for (i, out) in room.chunks_exact_mut(width).enumerate() {
            let (used, rest) = out.split_at_mut(self.d);
            used.copy_from_slice(&self.data[(first + i) * self.stride..][..self.d]);
            rest.fill(0.0);
        }
        (room, width)
    }
}

/// Cuts the first `n` floats off a scratch slice.
pub fn carve<'s>(scratch: &mut &'s mut [f32], n: usize) -> &'s mut [f32] {
    let (head, tail) = std::mem::take(scratch).split_at_mut(n);
    *scratch = tail;
    head
}
