//! `matmul`: tiles of the output side by side, each a product on one thread; a long contraction into a small
//! output is cut into pieces too, added up in their order. The cuts follow from the extents alone (rule 13).

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::layout::Layout;
use crate::mem::{Cut, Dst, Inputs, Mat, Outputs, Src, gemm, par_tiles};
use crate::simd::transpose::{Shuffle, transpose};
use ocelli_ir::ops::{Extents, MatMul};
use ocelli_ir::{TensorType, View};

/// Multiply-adds of a product.
fn multiplications(e: Extents) -> usize {
    [e.batch, e.m, e.n, e.k].into_iter().fold(1, usize::saturating_mul)
}

/// How the work is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiling {
    /// Rows of a tile.
    rows: usize,
    /// Columns of a tile.
    cols: usize,
    /// Length of a piece of the contraction.
    depth: usize,
}

impl Tiling {
    /// Columns are cut first: each tile packs its own columns of `b`, and of `a` nothing is packed, so this costs
    /// no work twice. Widths and heights are multiples of what the product keeps in registers (64 x 6).
    fn new(e: Extents) -> Self {
        const TILES: usize = 8;
        const LEAST: usize = 1 << 22;
        let whole = Self { rows: e.m.max(1), cols: e.n.max(1), depth: e.k.max(1) };
        let want = (multiplications(e) / LEAST).min(TILES);
        if want < 2 || e.batch >= TILES {
            return whole;
        }
        let cols = if e.n > 1024 { 128 } else { 64 };
        let tiles = e.batch * e.n.div_ceil(cols);
        let parts = want.div_ceil(tiles).min(e.m.div_ceil(48));
        let rows = e.m.div_ceil(parts).next_multiple_of(6).min(2046);
        let pieces = want.div_ceil(tiles * e.m.div_ceil(rows)).min(e.k.div_ceil(2048)).max(1);
        Self { rows, cols, depth: e.k.div_ceil(pieces) }
    }

    fn pieces(self, e: Extents) -> usize {
        e.k.div_ceil(self.depth).max(1)
    }
}

/// A factor: a batch of matrices, seen as the product needs them.
#[derive(Clone, Copy)]
struct Factor<'a> {
    src: Src<'a, f32>,
    transposed: bool,
}

impl<'a> Factor<'a> {
    fn matrix(&self, batch: usize) -> Mat<'a> {
        let (shape, strides) = (self.src.layout.shape(), self.src.layout.strides());
        let r = shape.len() - 2;
        let (mut at, mut rest) = (0, batch);
        for a in (0..r).rev() {
            at += rest % shape[a] * strides[a];
            rest /= shape[a];
        }
        let (row, col) = if self.transposed { (r + 1, r) } else { (r, r + 1) };
        let data = self.src.data.get(at..).unwrap_or(&[]);
        Mat { data, row_stride: strides[row], col_stride: strides[col] }
    }
}

/// Length of the pieces in which a transposed `b` is turned round.
const TURN: usize = 512;

/// True if each tile turns its columns of a transposed `b` round before the product, which then packs them row by
/// row, several times as fast. Short columns fit in the cache and gain nothing, nor do few rows to multiply with.
fn turns(op: &MatMul, e: Extents) -> bool {
    op.tb && e.m >= 96 && e.n >= 16 && e.k >= TURN
}

/// One launch.
struct Launch<'a> {
    e: Extents,
    t: Tiling,
    a: Factor<'a>,
    b: Factor<'a>,
    bias: Option<&'a [f32]>,
    turns: bool,
}

impl Launch<'_> {
    /// One tile, its first row and column in the output given by its index.
    fn tile(&self, cx: &Cx<'_>, mut out: Dst<'_, f32>, batch: usize, row: usize, col: usize, piece: usize) {
        let (row, col, from) = (row * self.t.rows, col * self.t.cols, piece * self.t.depth);
        let k = self.t.depth.min(self.e.k - from.min(self.e.k));
        let (a, b) = (self.a.matrix(batch).skip(row, from), self.b.matrix(batch).skip(from, col));
        if self.turns && b.row_stride == 1 {
            turned_product(cx, &mut out, a, b, k);
        } else {
            gemm(&mut out, false, a, b, k);
        }
        if let Some(bias) = self.bias.filter(|_| piece == 0) {
            add_bias(cx, &mut out, &bias[col..]);
        }
    }

    /// Work of the launch, in element operations.
    fn work(&self) -> usize {
        multiplications(self.e) / 8
    }

    /// Each tile whole. The first output is the product; `then` may make the others of it, tile by tile.
    fn run<const N: usize>(&self, cx: &Cx<'_>, outs: [Dst<'_, f32>; N], then: impl Then<N>) {
        let cuts = [Cut::new(0, 1), Cut::new(1, self.t.rows), Cut::new(2, self.t.cols)];
        par_tiles(cx, self.work(), outs.map(|out| (out, cuts)), |[b, r, c], tiles| {
            let mut tiles = tiles.map(|tile| tile.index(0));
            self.tile(cx, tiles[0].reborrow(), b, r, c, 0);
            then(cx, tiles);
        });
    }

    /// Each piece of the contraction to `partial`, then their sum, and what `then` makes of it.
    fn run_pieces<const N: usize>(
        &self,
        cx: &Cx<'_>,
        partial: &mut [f32],
        outs: [Dst<'_, f32>; N],
        then: impl Then<N>,
    ) {
        let (e, t, pieces) = (self.e, self.t, self.t.pieces(self.e));
        let n = e.batch * e.m * e.n;
        let cuts = [Cut::new(0, 1), Cut::new(1, 1), Cut::new(2, t.rows), Cut::new(3, t.cols)];
        let tiles = Dst::from_slice(&mut *partial, &[pieces, e.batch, e.m, e.n]);
        par_tiles(cx, self.work(), [(tiles, cuts)], |[p, b, r, c], [out]| {
            self.tile(cx, out.index(0).index(0), b, r, c, p);
        });
        let cuts = [Cut::new(0, 1), Cut::new(1, 16)];
        par_tiles(cx, n * pieces, outs.map(|out| (out, cuts)), |[b, r], tiles| {
            let mut tiles = tiles.map(|tile| tile.index(0));
            for i in 0..tiles[0].layout().shape()[0] {
                let at = (b * e.m + r * 16 + i) * e.n;
                super::reduce_sum::add_rows(cx, tiles[0].line(&[i]), &partial[at..], n, pieces);
            }
            then(cx, tiles);
        });
    }
}

/// What is done with a tile of the product, and with the same tile of the other outputs.
pub(super) trait Then<const N: usize>: Fn(&Cx<'_>, [Dst<'_, f32>; N]) + Sync + Send {}
impl<const N: usize, F: Fn(&Cx<'_>, [Dst<'_, f32>; N]) + Sync + Send> Then<N> for F {}

/// Adds the bias to a tile that is still in the cache.
fn add_bias(cx: &Cx<'_>, out: &mut Dst<'_, f32>, bias: &[f32]) {
    let rows = out.layout().shape()[0];
    cx.simd(
        #[inline(always)]
        || {
            for r in 0..rows {
                for (o, &b) in out.line(&[r]).iter_mut().zip(bias) {
                    *o += b;
                }
            }
        },
    );
}

/// A product with `b` turned round piece by piece, in this thread's scratch memory.
fn turned_product(cx: &Cx<'_>, out: &mut Dst<'_, f32>, a: Mat<'_>, b: Mat<'_>, k: usize) {
    let (cols, shuffle) = (out.layout().shape()[1], Shuffle::new());
    cx.scratch(TURN * cols, |scratch| {
        for from in (0..k).step_by(TURN) {
            let depth = TURN.min(k - from);
            let (columns, turned) = (b.skip(from, 0), &mut scratch[..depth * cols]);
            cx.simd(
                #[inline(always)]
                || transpose(shuffle, columns.data, columns.col_stride, cols, turned, cols),
            );
            let piece = Mat { data: turned, row_stride: cols, col_stride: 1 };
            gemm(out, from > 0, a.skip(0, from), piece, depth);
        }
    });
}

/// True if the last two axes can be read as a matrix with adjacent rows or adjacent columns.
fn is_matrix(view: &View) -> bool {
    let r = view.shape.len().saturating_sub(2);
    view.shape[r..].iter().zip(&view.strides[r..]).any(|(&n, &s)| s == 1 || n == 1)
}

impl Kernel for MatMul {
    fn reads(&self, input: usize, view: &View) -> bool {
        input < 2 && is_matrix(view)
    }

    fn writes(&self, _: usize, view: &View) -> bool {
        view.shape.len() == 2 && Layout::of(view).last_stride() == 1
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        let Ok(e) = self.extents(&inputs[0].shape, &inputs[1].shape) else { return Needs::default() };
        let t = Tiling::new(e);
        let partial = if t.pieces(e) > 1 { (t.pieces(e) * e.batch * e.m).saturating_mul(e.n) } else { 0 };
        let scratch = if turns(self, e) { TURN * t.cols } else { 0 };
        Needs { scratch: Needs::scratch(scratch).scratch, ..Needs::workspace::<f32>(partial) }
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let bias = self.bias.then(|| ins.dense::<f32>(2));
        self.product(cx, work, [ins.get(0), ins.get(1)], bias, outs.take::<f32, 1>(), |_, _| {});
    }
}

/// Work on the parts of a product while they are in the cache.
pub(super) trait Product {
    /// Computes the product into the first output, and calls `then` with each tile of it, a matrix, and with the same tile
    /// of the others, which have as many elements and no gaps.
    fn product<const N: usize>(
        &self,
        cx: &Cx<'_>,
        work: &mut Buffer,
        factors: [Src<'_, f32>; 2],
        bias: Option<&[f32]>,
        outs: [Dst<'_, f32>; N],
        then: impl Then<N>,
    );
}

impl Product for MatMul {
    fn product<const N: usize>(
        &self,
        cx: &Cx<'_>,
        work: &mut Buffer,
        [a, b]: [Src<'_, f32>; 2],
        bias: Option<&[f32]>,
        outs: [Dst<'_, f32>; N],
        then: impl Then<N>,
    ) {
        let Ok(e) = self.extents(a.layout.shape(), b.layout.shape()) else { return };
        if e.batch * e.m * e.n == 0 {
            return;
        }
        let outs = outs.map(|out| {
            // [m, n] may have gaps between rows; batches have none.
            if out.layout().shape() == [e.m, e.n] {
                out.split_axis(0, e.m)
            } else {
                out.reshape(&[e.batch, e.m, e.n])
            }
        });
        let (a, b) = (Factor { src: a, transposed: self.ta }, Factor { src: b, transposed: self.tb });
        let launch = Launch { e, t: Tiling::new(e), a, b, bias, turns: turns(self, e) };
        match launch.t.pieces(e) {
            1 => launch.run(cx, outs, then),
            pieces => launch.run_pieces(cx, work.slice(pieces * e.batch * e.m * e.n), outs, then),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_products_are_not_cut_and_large_ones_are() {
        let cut = |batch, m, n, k| {
            let e = Extents { batch, m, n, k };
            let t = Tiling::new(e);
            (e.m.div_ceil(t.rows), e.n.div_ceil(t.cols), t.pieces(e))
        };
        assert_eq!(cut(1, 16, 78, 128), (1, 1, 1));
        assert_eq!(cut(1, 1040, 384, 128), (2, 6, 1));
        assert_eq!(cut(1, 592, 1536, 512), (1, 12, 1));
        assert_eq!(cut(1, 16_448, 128, 128), (9, 2, 1));
        assert_eq!(cut(1, 128, 128, 16_448), (3, 2, 2));
        assert_eq!(cut(1, 32, 64, 1 << 18), (1, 1, 8));
        assert_eq!(cut(64, 257, 257, 16), (1, 1, 1));
    }
}
