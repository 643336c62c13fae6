//! Products of our own, whose results go through an epilogue before they are stored: what the library cannot add, such as
//! an exact GELU, dropout by coordinates, a residual.

use super::matmul;
use crate::elements::Loop;
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Matrix, Tensor, c_type};
use ocelli_ir::View;
use ocelli_ir::ops::{Extents, MatMul};

/// Results that the epilogue is given at once.
const NEIGHBOURS: usize = 8;
/// Widest result that is faster here than in the library with separate passes behind it (docs/log.md).
const WIDEST: usize = 128;
/// Rows of a tile.
const BM: usize = 64;
/// Columns of a tile.
const BN: usize = 128;
/// Elements along the inner extent that a step takes.
const BK: usize = 64;

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
        let lies = |m: &Matrix| m.dtype.size() == 2 && m.align >= 16 && m.row.max(m.col).is_multiple_of(8);
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

    /// The kernel, with an epilogue over the result's elements; none if the library and kernels behind it do better.
    pub fn lower(&self, epilogue: Loop, processors: usize) -> Option<Lowered> {
        let e = self.e;
        let blocks = e.m.div_ceil(BM) * e.n.div_ceil(BN);
        // Large products are the library's, which has the instructions of each GPU's generation; a few blocks with a long way
        // to go would leave the device idle.
        if e.n > WIDEST || (blocks < processors / 2 && e.k > 4 * BK) {
            return None;
        }
        // A long inner extent is hidden by steps in flight, a short one by warps.
        let (stages, warps_m, warps_n) = if e.k > 128 { (4, 2, 2) } else { (3, 2, 4) };
        let (text, args) = epilogue.epilogue(NEIGHBOURS)?;
        let pitch = |m: &Matrix| m.row.max(m.col);
        let source = Defines::new()
            .with("T", c_type(self.a.dtype))
            .with("M", e.m)
            .with("N", e.n)
            .with("K", e.k)
            .with("LDA", pitch(&self.a))
            .with("LDB", pitch(&self.b))
            .with("A_TURNED", u8::from(self.a.col != 1))
            .with("B_TURNED", u8::from(self.b.row != 1))
            .with("BM", BM)
            .with("BN", BN)
            .with("BK", BK)
            .with("STAGES", stages)
            .with("WARPS_M", warps_m)
            .with("WARPS_N", warps_n)
            .source(&[&text, include_str!("gemm.cu")].concat());
        let shared = (stages * (BM + BN) * BK * 2).max(BM * (BN + 4) * 4);
        let call = KernelCall {
            entry: "gemm",
            source,
            grid: [e.n.div_ceil(BN) as u32, e.m.div_ceil(BM) as u32, 1],
            block: 32 * (warps_m * warps_n) as u32,
            shared: shared as u32,
            args: [vec![self.a.arg, self.b.arg], args].concat(),
        };
        Some(Lowered { calls: vec![Call::Kernel(call)], ..Lowered::default() })
    }
}
