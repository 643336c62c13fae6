//! Products of our own, whose results go through an epilogue before they are stored: what the library cannot add, such as
//! an exact GELU, dropout by coordinates, a residual.

use super::matmul;
use crate::elements::Loop;
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Matrix, Tensor, c_type};
use ocelli_ir::View;
use ocelli_ir::ops::{Extents, MatMul};

/// Steps along the inner extent, in elements.
const BK: usize = 32;
/// Results that the epilogue is given at once.
const NEIGHBOURS: usize = 8;
/// Steps that are on their way at once.
const STAGES: usize = 4;

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
        let bn = if e.n > 64 { 128 } else { 64 };
        let blocks = |bm: usize| e.m.div_ceil(bm) * e.n.div_ceil(bn);
        let bm = if blocks(128) >= processors { 128 } else { 64 };
        // A long inner extent and a small result: blocks would have to share it.
        if e.k > 4096 && blocks(bm) < processors {
            return None;
        }
        let [warps_m, warps_n] = if bn == 128 { [2, 4] } else { [4, 2] };
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
            .with("BM", bm)
            .with("BN", bn)
            .with("BK", BK)
            .with("STAGES", STAGES)
            .with("WARPS_M", warps_m)
            .with("WARPS_N", warps_n)
            .source(&[&text, include_str!("gemm.cu")].concat());
        let shared = (STAGES * (bm + bn) * BK * 2).max(bm * (bn + 4) * 4);
        let call = KernelCall {
            entry: "gemm",
            source,
            grid: [e.n.div_ceil(bn) as u32, e.m.div_ceil(bm) as u32, 1],
            block: 32 * (warps_m * warps_n) as u32,
            shared: shared as u32,
            args: [vec![self.a.arg, self.b.arg], args].concat(),
        };
        Some(Lowered { calls: vec![Call::Kernel(call)], ..Lowered::default() })
    }
}
