//! Dropout decisions for whole tiles: sixteen Philox calls side by side. Equal, bit for bit, to
//! [`ocelli_ir::dropout`], which says what they mean.

/// Calls made together: the lanes of a tile.
const CALLS: usize = 32;
/// Words of decisions in one row of a tile, two columns to a word.
const ROW_WORDS: usize = 8;

/// The lane at each place, row by row and column by column.
const BY_ROW: [u64; CALLS] = lanes(false);
const BY_COLUMN: [u64; CALLS] = lanes(true);

const fn lanes(by_column: bool) -> [u64; CALLS] {
    let mut out = [0; CALLS];
    let mut i = 0;
    while i < CALLS {
        out[i] = (if by_column { i % 8 * 4 + i / 8 } else { i }) as u64;
        i += 1;
    }
    out
}

/// Philox calls whose counters differ in word 1 alone, which is `first` plus the lane of a tile. Lane 4 r + q
/// stands at place 4 r + q or, `by_column`, at 8 q + r.
///
/// Each word lies in the low half of 64 bits, ready for the next widening product; the high half is left as it
/// falls.
#[inline(always)]
fn philox(c0: u32, first: u32, c2: u32, c3: u32, mut k: [u32; 2], by_column: bool) -> [[u64; CALLS]; 4] {
    let mut c = [[u64::from(c0); CALLS], [0; CALLS], [u64::from(c2); CALLS], [u64::from(c3); CALLS]];
    let lanes = if by_column { &BY_COLUMN } else { &BY_ROW };
    for i in 0..CALLS {
        c[1][i] = u64::from(first) + lanes[i];
    }
    for _ in 0..10 {
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

/// What the decisions of a row of tiles depend on besides their place in it.
#[derive(Clone, Copy, Debug)]
pub struct TileRow {
    /// Key of site and seed.
    pub key: [u32; 2],
    /// Optimiser step.
    pub step: u32,
    /// Place of the sample in the data stream.
    pub sample: u32,
    /// Head, or 0.
    pub plane: usize,
    /// Row of the element divided by 16.
    pub tile_row: usize,
}

impl TileRow {
    #[inline(always)]
    fn calls(&self, tile: usize, by_column: bool) -> [[u64; CALLS]; 4] {
        let (c0, first) = ((self.tile_row << 16 | tile) as u32, (self.plane << 5) as u32);
        philox(c0, first, self.sample, self.step, self.key, by_column)
    }

    /// The 16-bit decisions of 16 rows and `16 tiles` columns. Row `r` begins at word `8 r tiles` of `out`; a
    /// word holds two columns, the even one in its low half.
    #[inline(always)]
    pub fn bits(&self, tiles: usize, out: &mut [u32]) {
        let pitch = tiles * ROW_WORDS;
        for tile in 0..tiles {
            let w = self.calls(tile, false);
            // Lane 4 r + q decides rows r and r + 8, columns 2 q, 2 q + 1 and 8 further.
            for r in 0..8 {
                for word in 0..4 {
                    let (down, right) = (word % 2, word / 2);
                    let at = (r + 8 * down) * pitch + tile * ROW_WORDS + right * 4;
                    let out = &mut out[at..at + 4];
                    for q in 0..4 {
                        out[q] = w[word][4 * r + q] as u32;
                    }
                }
            }
        }
    }

    /// The same decisions column by column: that of row `r` in column `c` at `c pitch + r` of `out`.
    #[inline(always)]
    pub fn columns(&self, tiles: usize, out: &mut [u16], pitch: usize) {
        for tile in 0..tiles {
            let w = self.calls(tile, true);
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

/// Words that [`TileRow::bits`] fills for `tiles` tiles.
pub const fn words(tiles: usize) -> usize {
    16 * ROW_WORDS * tiles
}

/// The decisions in row `row` (below 16) of what [`TileRow::bits`] filled, one per column.
#[inline(always)]
pub fn row(bits: &[u32], tiles: usize, row: usize) -> &[u16] {
    // Little-endian hosts only, see the crate's root: the low half of a word comes first.
    bytemuck::cast_slice(&bits[row * tiles * ROW_WORDS..][..tiles * ROW_WORDS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocelli_ir::dropout::Dropout;

    #[test]
    fn equals_the_definition() {
        let d = Dropout { threshold: 30_000, site: 0x0123_4567_89ab_cdef };
        let seed = [11, 22];
        for (plane, tile_row, tiles) in [(0, 0, 3), (5, 2, 1), (31, 70, 2)] {
            let at = TileRow { key: d.key(seed), step: 9, sample: 77, plane, tile_row };
            let (mut bits, mut columns) = (vec![0; words(tiles)], vec![0; tiles * 16 * 20]);
            at.bits(tiles, &mut bits);
            at.columns(tiles, &mut columns, 20);
            for r in 0..16 {
                for (c, &b) in row(&bits, tiles, r).iter().enumerate() {
                    let want = d.keeps(seed, 9, 77, plane, tile_row * 16 + r, c);
                    assert_eq!(b >= d.threshold, want, "row {r} column {c}");
                    assert_eq!(columns[c * 20 + r], b, "row {r} column {c}");
                }
            }
        }
    }
}
