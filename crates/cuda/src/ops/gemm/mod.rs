//! Products of our own, whose results go through an epilogue before they are stored: what the library cannot add, such as
//! an exact GELU, dropout by coordinates, a residual.

mod block;
pub mod hidden;
mod wgmma;

use super::matmul;
use crate::elements::Loop;
use crate::lower::{Arg, Defines, Lowered, Machine, Matrix, Tensor};
use block::Block;
use ocelli_ir::View;
use ocelli_ir::ops::{Extents, MatMul};
use wgmma::Wgmma;

/// Results that the epilogue is given at once.
const NEIGHBOURS: usize = 8;
/// Most products for each element moved, `n k / (n + k)`, up to which they hide behind memory (likewise).
const DENSEST: usize = 256;
/// Elements along the inner extent that a step takes.
const BK: usize = 64;
/// Widest result that `mma.sync` makes faster than the library with separate passes behind it (docs/log.md).
const WIDEST: usize = 128;
/// Rows of a tile.
const BM: usize = 64;
/// Columns of a tile at most.
const BN: usize = 128;

/// A product with its operands.
#[derive(Clone, Debug)]
pub struct Product {
    e: Extents,
    a: Matrix,
    b: Matrix,
}

impl Product {
    /// A product of operands that lie in inputs number `a` and `b`, seen in the shapes given; none if tensor cores cannot
    /// take them as they lie.
    pub fn new(op: &MatMul, [a, b]: [(usize, &Tensor, &View); 2]) -> Option<Self> {
        let e = op.extents(&a.2.shape, &b.2.shape).ok()?;
        let matrix = |(i, t, view): (usize, &Tensor, &View), turned| {
            matmul::matrix(Arg::In(i, 0), &Tensor { view: view.clone(), ..t.clone() }, turned)
        };
        let product = Self { e, a: matrix(a, op.ta)?, b: matrix(b, op.tb)? };
        let whole = |n: usize| n.is_multiple_of(8);
        let edges = whole(e.k) && whole(e.n) && (product.a.col == 1 || whole(e.m));
        let same = product.a.dtype == product.b.dtype;
        (e.batch == 1 && e.m * e.n * e.k > 0 && edges && same && lies(&product.a) && lies(&product.b))
            .then_some(product)
    }

    /// Its result's number of elements.
    pub fn numel(&self) -> usize {
        self.e.m * self.e.n
    }

    /// How many lanes have a row of the result in the epilogue, if they have all of it.
    pub fn whole_rows(&self) -> Option<usize> {
        let n = self.e.n;
        (n.is_power_of_two() && (2 * NEIGHBOURS..=BN).contains(&n)).then_some(n / NEIGHBOURS)
    }

    /// The kernel, with an epilogue over the result's elements, and where the sums of columns go that the epilogue adds to;
    /// none if the library and kernels behind it do better.
    pub fn lower(&self, epilogue: Loop, columns: &[Arg], machine: Machine) -> Option<Lowered> {
        let e = self.e;
        let tile = Tile::of(self, machine, !epilogue.stages.is_empty())?;
        let pitch = |m: &Matrix| m.row.max(m.col);
        let b_turned = self.b.row != 1;
        let defines = Defines::new()
            .with("K", e.k)
            .with("LDA", pitch(&self.a))
            .with("LDB", pitch(&self.b))
            .with("A_TURNED", u8::from(self.a.col != 1))
            .with("B_TURNED", u8::from(b_turned))
            .with("BK", BK)
            .with("STAGES", tile.stages)
            .with("WGMMA", u8::from(tile.wgmma));
        let multiply = match tile.wgmma {
            true => {
                let instruction = Wgmma { n: tile.bn / tile.warps.1, b_turned, ..Wgmma::new(self.a.dtype) };
                let text = instruction.function("wgmma_16");
                [include_str!("warpgroup.cuh"), &text, include_str!("wgmma.cuh")].concat()
            }
            false => include_str!("mma.cuh").into(),
        };
        Block {
            dtype: self.a.dtype,
            results: [e.m, e.n],
            tile: [BM, tile.bn],
            warps: tile.warps,
            parts: 1,
            read_ahead: true,
            at_once: if tile.warps.0 * tile.warps.1 > 4 { 2 } else { 1 },
            shared: tile.stages * (BM + tile.bn) * BK * 2,
            multiply: defines.source(&[include_str!("tiles.cuh"), &multiply].concat()),
            operands: vec![self.a.arg, self.b.arg],
        }
        .with_epilogue(epilogue, columns)
    }
}

/// True if tiles of 16-bit numbers can be moved from there as they are.
fn lies(m: &Matrix) -> bool {
    m.dtype.size() == 2 && m.align >= 16 && m.row.max(m.col).is_multiple_of(8)
}

/// How a product is shared out.
struct Tile {
    bn: usize,
    stages: usize,
    /// Warps along rows and columns.
    warps: (usize, usize),
    wgmma: bool,
}

impl Tile {
    /// None if the library does better.
    fn of(product: &Product, machine: Machine, whole_rows: bool) -> Option<Self> {
        let e = product.e;
        let wgmma = machine.wgmma && product.a.col == 1;
        // Where there is much to multiply for each element that is moved, the library's schedules are better.
        if (!wgmma && e.n > WIDEST) || e.n * e.k > DENSEST * (e.n + e.k) {
            return None;
        }
        // A row's lanes must have all of it.
        let bn = if whole_rows || e.n > 64 { e.n.min(BN) } else { 64 };
        let bn = if whole_rows { bn } else { bn.next_multiple_of(64) };
        // A few blocks with a long way to go would leave the device idle.
        let blocks = e.m.div_ceil(BM) * e.n.div_ceil(bn);
        if blocks < machine.processors / 2 && e.k > 4 * BK {
            return None;
        }
        let steps = e.k.div_ceil(BK);
        let (stages, warps, wgmma) = match wgmma {
            true if bn.is_multiple_of(64) => (steps.min(4), (4, bn / 64), true),
            // A long inner extent is hidden by steps in flight, a short one by warps.
            _ if bn == BN && e.k > 128 => (4, (2, 2), false),
            _ if bn == BN => (3, (2, 4), false),
            _ => (3, (4, 1), false),
        };
        Some(Self { bn, stages, warps, wgmma })
    }
}
