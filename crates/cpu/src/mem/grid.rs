//! Outputs cut into tiles that are written by several threads at once.
//!
//! The cut depends on shapes alone, never on the number of threads (rule 13).

use super::{Dst, Elem, Src};
use crate::cx::Cx;

/// How one output is cut along one axis of the grid: rows `i * chunk..` of `axis` belong to tile `i`.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The axis of the output.
    pub axis: usize,
    /// Rows of a tile; the last one may have fewer.
    pub chunk: usize,
}

impl Cut {
    /// `chunk` rows of `axis` to a tile.
    pub fn new(axis: usize, chunk: usize) -> Self {
        Self { axis, chunk: chunk.max(1) }
    }
}

/// Cuts `outs` into a common grid of tiles and calls `f(tile index, its part of each output)` for each, on
/// several threads if `work` (in element operations) is worth it.
///
/// # Panics
/// If the outputs give different grids, or one is cut twice along an axis.
pub fn par_tiles<'a, T: Elem, const N: usize, const G: usize>(
    cx: &Cx<'_>,
    work: usize,
    outs: [(Dst<'a, T>, [Cut; G]); N],
    f: impl Fn([usize; G], [Dst<'a, T>; N]) + Sync + Send,
) {
    let parts: [usize; G] = std::array::from_fn(|g| count(&outs[0], g));
    for out in &outs {
        assert!((0..G).all(|g| count(out, g) == parts[g]), "outputs cut into different grids: {outs:?}");
        assert!((0..G).all(|g| (0..g).all(|h| out.1[g].axis != out.1[h].axis)), "cut twice: {outs:?}");
    }
    cx.par(parts.iter().product(), work, |task| {
        let mut rest = task;
        let mut index = [0; G];
        for g in (0..G).rev() {
            index[g] = rest % parts[g];
            rest /= parts[g];
        }
        let tiles = std::array::from_fn(|i| {
            let (out, cuts) = &outs[i];
            // SAFETY: `par` calls each task once, and the tiles of two tasks differ in the rows of at least one
            // axis, so by the invariant of `Dst` they share no element. `outs` itself is not used meanwhile.
            unsafe { tile(out, cuts, &index) }
        });
        f(index, tiles);
    });
}

/// Elements of a part of [`par_parts`].
const CHUNK: usize = 16 * 1024;

/// Cuts an output and an input of the same shape into parts, and calls `f` with both of each, on several threads if
/// there are enough elements.
pub fn par_parts<A: Elem, B: Elem>(
    cx: &Cx<'_>,
    mut out: Dst<'_, B>,
    src: &Src<'_, A>,
    f: impl Fn(&mut Dst<'_, B>, &Src<'_, A>) + Sync + Send,
) {
    let (n, layout) = (out.layout().numel(), *out.layout());
    let Some(axis) = layout.shape().iter().position(|&n| n > 1).filter(|_| n > CHUNK) else {
        return f(&mut out, src);
    };
    let rows = layout.shape()[axis];
    let chunk = (CHUNK / (n / rows)).clamp(1, rows);
    par_tiles(cx, n, [(out, [Cut::new(axis, chunk)])], |[i], [mut out]| {
        let len = out.layout().shape()[axis];
        f(&mut out, &src.narrow(axis, i * chunk, len));
    });
}

/// Number of tiles along axis `g` of the grid.
fn count<T: Elem, const G: usize>((out, cuts): &(Dst<'_, T>, [Cut; G]), g: usize) -> usize {
    out.layout().shape()[cuts[g].axis].div_ceil(cuts[g].chunk)
}

/// # Safety
/// The tiles of one output that live at the same time must have different indices, and the output must not be
/// used while they live.
unsafe fn tile<'a, T: Elem, const G: usize>(
    out: &Dst<'a, T>,
    cuts: &[Cut; G],
    index: &[usize; G],
) -> Dst<'a, T> {
    // SAFETY: the caller's promise.
    let mut tile = unsafe { Dst::new(out.start(), *out.layout()) };
    for (cut, &i) in cuts.iter().zip(index) {
        let (start, total) = (i * cut.chunk, tile.layout().shape()[cut.axis]);
        tile = tile.narrow(cut.axis, start, cut.chunk.min(total - start));
    }
    tile
}
