//! Dropout decisions for whole rows and tiles: many Philox calls side by side. Equal, bit for bit, to
//! [`ocelli_ir::dropout`], which says what they mean.

use ocelli_ir::dropout::ROUNDS;

/// Calls made together: the lanes of a tile.
const CALLS: usize = 32;
/// Columns that a call decides in a row.
pub const GROUP: usize = 8;

/// Counters in order, and those of a tile's lanes: lane 4 r + q stands at place 8 q + r.
const IN_ORDER: [u64; CALLS] = counters(false);
const BY_COLUMN: [u64; CALLS] = counters(true);

const fn counters(by_column: bool) -> [u64; CALLS] {
    let mut out = [0; CALLS];
    let mut i = 0;
    while i < CALLS {
        out[i] = (if by_column { i % 8 * 4 + i / 8 } else { i }) as u64;
        i += 1;
    }
    out
}

/// Philox calls whose counters differ in word 1 alone, which is `first` plus a place's number in `order`.
///
/// Each word lies in the low half of 64 bits, ready for the next widening product; the high half is left as it
/// falls.
#[inline(always)]
fn philox(c0: u32, first: u32, c2: u32, c3: u32, mut k: [u32; 2], order: &[u64; CALLS]) -> [[u64; CALLS]; 4] {
    let mut c = [[u64::from(c0); CALLS], [0; CALLS], [u64::from(c2); CALLS], [u64::from(c3); CALLS]];
    for i in 0..CALLS {
        c[1][i] = u64::from(first) + order[i];
    }
    for _ in 0..ROUNDS {
        let [k0, k1] = k.map(u64::from);
        for i in 0..CALLS {
            let p0 = 0xD251_1F53 * (c[0][i] & 0xffff_ffff);
            let p1 = 0xCD9E_8D57 * (c[2][i] & 0xffff_ffff);
            c[0][i] = p1 >> 32 ^ c[1][i] ^ k0;
            c[1][i] = p1;
            c[2][i] = p0 >> 32 ^ c[3][i] ^ k1;
            c[3][i] = p0;
        }
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// What the decisions of a row of tiles depend on, in attention, besides their place in it.
#[derive(Clone, Copy, Debug)]
pub struct TileRow {
    /// Key of site and seed.
    pub key: [u32; 2],
    /// Optimiser step.
    pub step: u32,
    /// Place of the sample in the data stream.
    pub sample: u32,
    /// Head.
    pub plane: usize,
    /// Row of the element divided by 16.
    pub tile_row: usize,
}

impl TileRow {
    /// The 16-bit decisions of 16 rows and `16 tiles` columns, column by column: that of row `r` in column `c` at
    /// `c pitch + r` of `out`.
    #[inline(always)]
    pub fn columns(&self, tiles: usize, out: &mut [u16], pitch: usize) {
        for tile in 0..tiles {
            let (c0, first) = ((self.tile_row << 16 | tile) as u32, (self.plane << 5) as u32);
            let w = philox(c0, first, self.sample, self.step, self.key, &BY_COLUMN);
            for q in 0..4 {
                for word in 0..4 {
                    let (down, right) = (word % 2, word / 2);
                    for odd in 0..2 {
                        let at = (tile * 16 + right * 8 + 2 * q + odd) * pitch + 8 * down;
                        let out = &mut out[at..at + 8];
                        for r in 0..8 {
                            out[r] = (w[word][8 * q + r] >> (16 * odd)) as u16;
                        }
                    }
                }
            }
        }
    }
}

/// What the decisions of a row depend on, outside attention.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Key of site and seed.
    pub key: [u32; 2],
    /// Optimiser step.
    pub step: u32,
    /// Place of the sample in the data stream.
    pub sample: u32,
    /// Row of the element.
    pub row: usize,
}

impl Row {
    /// The 16-bit decisions of as many columns as `out` has: a multiple of [`GROUP`].
    #[inline(always)]
    pub fn bits(&self, out: &mut [u16]) {
        // Little-endian hosts only, see the crate's root: the low half of a word comes first.
        let out: &mut [u32] = bytemuck::cast_slice_mut(out);
        for (i, out) in out.chunks_mut(CALLS * GROUP / 2).enumerate() {
            let w = philox(self.row as u32, (i * CALLS) as u32, self.sample, self.step, self.key, &IN_ORDER);
            for (call, out) in out.chunks_exact_mut(GROUP / 2).enumerate() {
                for word in 0..GROUP / 2 {
                    out[word] = w[word][call] as u32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocelli_ir::dropout::Dropout;

    const D: Dropout = Dropout { threshold: 30_000, site: 0x0123_4567_89ab_cdef };
    const SEED: [u32; 2] = [11, 22];

    #[test]
    fn tiles_equal_the_definition() {
        for (plane, tile_row, tiles) in [(0, 0, 3), (5, 2, 1), (31, 70, 2)] {
            let at = TileRow { key: D.key(SEED), step: 9, sample: 77, plane, tile_row };
            let mut columns = vec![0; tiles * 16 * 20];
            at.columns(tiles, &mut columns, 20);
            for (r, c) in (0..16).flat_map(|r| (0..16 * tiles).map(move |c| (r, c))) {
                let want = D.keeps_in_tile(SEED, 9, 77, plane, tile_row * 16 + r, c);
                assert_eq!(columns[c * 20 + r] >= D.threshold, want, "row {r} column {c}");
            }
        }
    }

    #[test]
    fn rows_equal_the_definition() {
        for (row, cols) in [(0, 8), (3, 128), (256, 264), (70_000, 520)] {
            let mut bits = vec![0; cols];
            Row { key: D.key(SEED), step: 9, sample: 77, row }.bits(&mut bits);
            for (c, &b) in bits.iter().enumerate() {
                assert_eq!(b >= D.threshold, D.keeps(SEED, 9, 77, row, c), "row {row} column {c}");
            }
        }
    }
}
