//! Attention for few queries: one of the last block, or one of a caption that is being written. Tiles of 16 queries would be
//! nearly empty, and their warps too few; here the lanes share out the keys (`few.cuh`).

use super::{Cx, SHARED, call};
use crate::lower::{Defines, Lowered};

/// As many queries (backward: of all heads that share keys) as are taken instead of tiles on tensor cores: with 4, these are
/// faster again.
const INSTEAD_OF_TILES: usize = 2;
/// And as many as are taken instead of the simple kernels.
const MOST: usize = 4;

const FEW: &str = include_str!("few.cuh");

impl Cx<'_> {
    /// True if the queries are few, in this direction.
    pub(super) fn few(&self, backward: bool) -> bool {
        let most = if self.cores() { INSTEAD_OF_TILES } else { MOST };
        self.e.tq * if backward { self.e.h / self.e.g } else { 1 } <= most
    }

    /// The macros for blocks of `rows` queries, and the threads of a block.
    fn few_defines(&self, rows: usize) -> (Defines, usize) {
        // A lane holds 8 elements of a key, for up to 5 keys. Two warps suffice for the patches of a small picture.
        let keys = 32 / self.e.d.div_ceil(8).next_power_of_two();
        let warps = if self.e.tk <= 2 * 5 * keys { 2 } else { 4 };
        let unroll = self.e.tk.div_ceil(warps * keys).min(if warps == 2 { 5 } else { 4 });
        let vector = self.e.d.is_multiple_of(8) && self.operands.iter().all(|(_, (_, t))| super::aligned(t));
        let defines = self.defines().with("WARPS", warps).with("ROWS", rows).with("VECTOR", u8::from(vector));
        (defines.with("UNROLL", unroll.div_ceil(rows)), 32 * warps)
    }

    pub(super) fn few_forward(&self, done: &mut Lowered) -> Option<()> {
        let e = self.e;
        let (defines, threads) = self.few_defines(e.tq);
        let source = defines.source(&[SHARED, FEW, include_str!("few_forward.cu")].concat());
        let args = self.args(&["Q", "K", "V"], &[self.arg("O")?, self.lse])?;
        done.calls.push(call("attention_forward", source, [1, e.h, e.b], threads, 0, args));
        Some(())
    }

    pub(super) fn few_backward(&self, done: &mut Lowered) -> Option<()> {
        let e = self.e;
        let (defines, threads) = self.few_defines(e.tq * e.h / e.g);
        let source = defines.source(&[SHARED, FEW, include_str!("few_backward.cu")].concat());
        let out = [self.arg("DQ")?, self.arg("DK")?, self.arg("DV")?];
        let args = self.args(&["Q", "K", "V", "O", "LSE", "DO"], &out)?;
        done.calls.push(call("attention_backward", source, [1, e.g, e.b], threads, 0, args));
        Some(())
    }
}
