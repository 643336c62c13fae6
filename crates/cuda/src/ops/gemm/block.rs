//! A kernel of blocks that make sums, each in its own way, and hand them to an epilogue.

use super::super::column_sum::Sums;
use super::NEIGHBOURS;
use crate::elements::Loop;
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, c_type};
use ocelli_ir::DType;

/// What makes the sums of a block's results.
pub struct Block {
    /// Type of the operands.
    pub dtype: DType,
    /// Rows and columns of all results.
    pub results: [usize; 2],
    /// Rows and columns of a block's.
    pub tile: [usize; 2],
    /// Warps along rows and columns.
    pub warps: (usize, usize),
    /// How many times as many there are, each with the sums of a part.
    pub parts: usize,
    /// Blocks that a multiprocessor should hold.
    pub at_once: usize,
    /// Registers are left for what the epilogue reads while sums are made.
    pub read_ahead: bool,
    /// Bytes of shared memory that it uses.
    pub shared: usize,
    /// Text that defines `OPERANDS`, `GIVEN` and `multiply` (gemm.cu).
    pub multiply: String,
    /// Addresses of the operands.
    pub operands: Vec<Arg>,
}

impl Block {
    /// The kernel, with an epilogue over the results' elements, and where the sums of columns go that the epilogue adds to.
    /// None if the epilogue's operands do not lie so.
    pub fn with_epilogue(self, epilogue: Loop, columns: &[Arg]) -> Option<Lowered> {
        let ([m, n], [bm, bn]) = (self.results, self.tile);
        let (text, args) = epilogue.epilogue(NEIGHBOURS)?;
        let mut done = Lowered::default();
        let blocks = m.div_ceil(bm);
        let sums = (!columns.is_empty()).then(|| Sums::new(&mut done, blocks, n, columns));
        let threads = 32 * self.warps.0 * self.warps.1 * self.parts;
        let defines = Defines::new()
            .with("T", c_type(self.dtype))
            .with("M", m)
            .with("N", n)
            .with("BM", bm)
            .with("BN", bn)
            .with("WARPS_M", self.warps.0)
            .with("WARPS_N", self.warps.1)
            .with("WARPS_K", self.parts)
            .with("READ_AHEAD", u8::from(self.read_ahead))
            .with("BLOCKS", self.at_once);
        let source = defines
            .source(&[&text, include_str!("block.cuh"), &self.multiply, include_str!("gemm.cu")].concat());
        let shared = self.shared.max(bm * (bn + 8) * 4).max(threads * columns.len() * NEIGHBOURS * 4);
        let parts = sums.as_ref().map(|s| s.parts);
        done.calls.push(Call::Kernel(KernelCall {
            entry: "gemm",
            source,
            grid: [n.div_ceil(bn) as u32, blocks as u32, 1],
            block: threads as u32,
            shared: shared as u32,
            args: self.operands.into_iter().chain(parts).chain(args).collect(),
        }));
        Sums::make(sums, &mut done);
        Some(done)
    }
}
