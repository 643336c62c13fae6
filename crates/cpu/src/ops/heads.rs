//! What attention and its gradient share: where each head lies, what each query sees, which weights dropout
//! keeps, and packing heads for the small products.

use crate::mem::{Inputs, Src};
use crate::simd::mm::COLS;
use crate::simd::philox::TileRow;
use ocelli_ir::ops::{Attention, AttentionExtents};

/// Query rows that a task takes at a time: two of dropout's tiles.
pub const BLOCK: usize = 32;

/// Rounds up to what the small products take.
pub const fn padded(n: usize) -> usize {
    n.next_multiple_of(COLS)
}

/// Dropout of one launch.
#[derive(Clone, Copy, Debug)]
struct Keys<'a> {
    key: [u32; 2],
    step: u32,
    samples: &'a [u32],
}

/// The inputs that forward and gradient have in common.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// The op, or the one whose gradient is taken.
    pub op: &'a Attention,
    /// Extents.
    pub e: AttentionExtents,
    /// Keys rounded up.
    pub pitch: usize,
    /// Width of a head rounded up.
    pub width: usize,
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
            let key = d.key([seed[0], seed[1]]);
            Keys { key, step: ins.scalar(first + 1), samples: ins.dense(first + 2) }
        });
        Self { op, e, pitch: padded(e.tk), width: padded(e.d), lens, keys }
    }

    /// Number of valid keys of a sample.
    pub fn valid(&self, b: usize) -> usize {
        self.lens.map_or(self.e.tk, |lens| (lens[b] as usize).min(self.e.tk))
    }

    /// What decides the dropout of query rows `16 tile_row ..` of a head.
    pub fn tile_row(&self, b: usize, h: usize, tile_row: usize) -> Option<TileRow> {
        self.keys.map(|k| TileRow { key: k.key, step: k.step, sample: k.samples[b], plane: h, tile_row })
    }
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

    /// Row `t`.
    #[inline(always)]
    pub fn row(&self, t: usize) -> &'a [f32] {
        &self.data[t * self.stride..][..self.d]
    }

    /// Rows from `first` on, as many as fill `out`, each padded with zeros to `width`.
    #[inline(always)]
    pub fn pack_rows(&self, first: usize, width: usize, out: &mut [f32]) {
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let (used, rest) = out.split_at_mut(self.d);
            used.copy_from_slice(self.row(first + i));
            rest.fill(0.0);
        }
    }

    /// The transpose of the first `n` rows times `factor`, each of its rows padded with zeros to `pitch`.
    #[inline(always)]
    pub fn pack_cols(&self, n: usize, factor: f32, pitch: usize, out: &mut [f32]) {
        for (c, out) in out.chunks_exact_mut(pitch).take(self.d).enumerate() {
            let (used, rest) = out.split_at_mut(n);
            for (t, o) in used.iter_mut().enumerate() {
                *o = self.data[t * self.stride + c] * factor;
            }
            rest.fill(0.0);
        }
    }
}

/// Cuts the first `n` floats off a scratch slice.
pub fn carve<'s>(scratch: &mut &'s mut [f32], n: usize) -> &'s mut [f32] {
    let (head, tail) = std::mem::take(scratch).split_at_mut(n);
    *scratch = tail;
    head
}
