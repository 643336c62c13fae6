//! `reduce_sum`: blocks of rows in f32, the blocks' sums added up in f64 in their order.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::layout::{Layout, MAX_RANK};
use crate::mem::{Cut, Dst, Inputs, Outputs, Src, par_tiles};
use crate::simd::sums::sum_wide;
use crate::walk::Walk;
use ocelli_ir::ops::ReduceSum;
use ocelli_ir::{TensorType, View};

/// Rows of a block.
const ROWS: usize = 32;
/// Elements that make one partial sum of a long row.
const CHUNK: usize = 16 * 1024;
/// Columns that are added up together.
const LANES: usize = 16;

/// `out[c] = sum over rows of x[r * stride + c]`, in f64.
pub fn add_rows(cx: &Cx<'_>, out: &mut [f32], x: &[f32], stride: usize, rows: usize) {
    cx.simd(
        #[inline(always)]
        || {
            for (i, out) in out.chunks_mut(LANES).enumerate() {
                let mut acc = [0.0f64; LANES];
                for r in 0..rows {
                    let x = &x[r * stride + i * LANES..][..out.len()];
                    for (a, &x) in acc.iter_mut().zip(x) {
                        *a += f64::from(x);
                    }
                }
                for (o, a) in out.iter_mut().zip(acc) {
                    *o = a as f32;
                }
            }
        },
    );
}

/// `out[c] = sum over rows of x[r * stride + c]`, in f32, for few rows.
#[inline(always)]
fn add_block(out: &mut [f32], x: &[f32], stride: usize, rows: usize) {
    out.fill(0.0);
    for r in 0..rows {
        for (o, &x) in out.iter_mut().zip(&x[r * stride..]) {
            *o += x;
        }
    }
}

/// The input as `[outer, reduced, inner]` with the strides of each, if its axes can be seen so.
fn three_axes(input: &Layout, kept: &Layout) -> Option<([usize; 3], [usize; 3])> {
    let mut shape = [1; 3];
    let mut strides = [0; 3];
    let mut part = 0;
    for axis in (0..input.shape().len()).filter(|&a| input.shape()[a] != 1) {
        let (n, s) = (input.shape()[axis], input.strides()[axis]);
        let reduced = kept.shape()[axis] == 1;
        let want = if reduced {
            1
        } else if part == 0 {
            0
        } else {
            2
        };
        if want < part || (shape[want] > 1 && strides[want] != n * s) {
            return None;
        }
        (part, shape[want], strides[want]) = (want, shape[want] * n, s);
    }
    Some((shape, strides))
}

impl Kernel for ReduceSum {
    fn reads(&self, _: usize, _: &View) -> bool {
        true
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        // Blocks of rows for sums down columns; chunks, in f64, for sums along rows.
        let (all, kept) = (inputs[0].shape.numel(), self.kept(&inputs[0].shape).numel().max(1));
        let reduced = all / kept;
        Needs::workspace::<f64>(
            kept.saturating_mul(reduced.div_ceil(ROWS).div_ceil(2) + reduced.div_ceil(CHUNK)),
        )
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let x = ins.get::<f32>(0);
        let [out] = outs.take::<f32, 1>();
        let kept = *out.layout();
        let out = out.dense();
        match three_axes(&x.layout, &kept) {
            _ if x.layout.numel() == 0 => out.fill(0.0),
            Some((n, s)) if n[2] == 1 && (s[1] == 1 || n[1] == 1) => along(cx, work, out, x.data, n, s),
            Some((n, s)) if s[2] == 1 => down(cx, work, out, x.data, n, s),
            _ => any_order(out, &x, &kept),
        }
    }
}

/// Sums along adjacent elements: `[outer, reduced]`.
fn along(cx: &Cx<'_>, work: &mut Buffer, out: &mut [f32], x: &[f32], n: [usize; 3], s: [usize; 3]) {
    let chunks = n[1].div_ceil(CHUNK);
    let partial = work.slice::<f64>(n[0] * chunks);
    cx.par_fill(partial, n[0] * n[1], |i| {
        let (row, chunk) = (i / chunks, i % chunks);
        let len = CHUNK.min(n[1] - chunk * CHUNK);
        let x = &x[row * s[0] + chunk * CHUNK..][..len];
        cx.simd(
            #[inline(always)]
            || sum_wide(x),
        )
    });
    out.iter_mut().zip(partial.chunks_exact(chunks)).for_each(|(o, p)| *o = p.iter().sum::<f64>() as f32);
}

/// Sums of rows of adjacent elements: `[outer, reduced, inner]`.
fn down(cx: &Cx<'_>, work: &mut Buffer, out: &mut [f32], x: &[f32], n: [usize; 3], s: [usize; 3]) {
    let blocks = n[1].div_ceil(ROWS);
    let partial = work.slice::<f32>(n[0] * blocks * n[2]);
    let tiles = Dst::from_slice(partial, &[n[0] * blocks, n[2]]);
    par_tiles(cx, n[0] * n[1] * n[2], [(tiles, [Cut::new(0, 1)])], |[i], [out]| {
        let (outer, block) = (i / blocks, i % blocks);
        let rows = ROWS.min(n[1] - block * ROWS);
        let (out, x) = (out.dense(), &x[outer * s[0] + block * ROWS * s[1]..]);
        cx.simd(
            #[inline(always)]
            || add_block(out, x, s[1], rows),
        );
    });
    for (out, partial) in out.chunks_exact_mut(n[2]).zip(partial.chunks_exact(blocks * n[2])) {
        add_rows(cx, out, partial, n[2], blocks);
    }
}

/// Any other order of axes: one output after the other, in f64.
fn any_order(out: &mut [f32], x: &Src<'_, f32>, kept: &Layout) {
    let (mut fixed, mut summed) = ([1; MAX_RANK], [1; MAX_RANK]);
    let rank = kept.shape().len();
    for a in 0..rank {
        let n = x.layout.shape()[a];
        (fixed[a], summed[a]) = if kept.shape()[a] == 1 { (1, n) } else { (n, 1) };
    }
    let part = |shape: &[usize]| Walk::new([&Layout::new(&shape[..rank], x.layout.strides())]);
    let (outer, inner) = (part(&fixed), part(&summed));
    let ([step], [inner_step]) = (outer.inner(), inner.inner());
    let count = summed[..rank].iter().product();
    outer.runs(0..out.len(), |first, len, [at]| {
        for i in 0..len {
            let mut sum = 0.0;
            inner.runs(0..count, |_, len, [from]| {
                let from = at + i * step + from;
                sum += (0..len).map(|j| f64::from(x.data[from + j * inner_step])).sum::<f64>();
            });
            out[first + i] = sum as f32;
        }
    });
}
