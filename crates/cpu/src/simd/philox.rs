//! Dropout decisions for whole tiles: sixteen Philox calls side by side. Equal, bit for bit, to
//! [`ocelli_ir::dropout`], which says what they mean.

/// Calls made together: half of a tile's 32 lanes.
const CALLS: usize = 16;
/// Words of decisions in one row of a tile, two columns to a word.
const ROW_WORDS: usize = 8;

/// Sixteen philox calls whose counters differ in word 1 alone: `first`, `first + 1`, ...
#[inline(always)]
fn philox(c0: u32, first: u32, c2: u32, c3: u32, mut k: [u32; 2]) -> [[u32; CALLS]; 4] {
    let mut c = [[c0; CALLS], [first; CALLS], [c2; CALLS], [c3; CALLS]];
    for i in 0..CALLS {
        c[1][i] += i as u32;
    }
    for _ in 0..10 {
        let old = c;
        for i in 0..CALLS {
            let p0 = 0xD251_1F53 * u64::from(old[0][i]);
            let p1 = 0xCD9E_8D57 * u64::from(old[2][i]);
            c[0][i] = (p1 >> 32) as u32 ^ old[1][i] ^ k[0];
            c[1][i] = p1 as u32;
            c[2][i] = (p0 >> 32) as u32 ^ old[3][i] ^ k[1];
            c[3][i] = p0 as u32;
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
    /// The 16-bit decisions of 16 rows and `16 tiles` columns. Row `r` begins at word `8 r tiles` of `out`; a
    /// word holds two columns, the even one in its low half.
    #[inline(always)]
    pub fn bits(&self, tiles: usize, out: &mut [u32]) {
        let pitch = tiles * ROW_WORDS;
        for tile in 0..tiles {
            for half in 0..2 {
                let lane = half * CALLS;
                let c0 = (self.tile_row << 16 | tile) as u32;
                let w = philox(c0, (self.plane << 5 | lane) as u32, self.sample, self.step, self.key);
                // Lane 4 r + q decides rows r and r + 8, columns 2 q, 2 q + 1 and 8 further.
                for r in 0..4 {
                    let row = half * 4 + r;
                    for (word, (down, right)) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().enumerate() {
                        let at = (row + 8 * down) * pitch + tile * ROW_WORDS + right * 4;
                        out[at..at + 4].copy_from_slice(&w[word][4 * r..4 * r + 4]);
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
            let mut bits = vec![0; words(tiles)];
            at.bits(tiles, &mut bits);
            for r in 0..16 {
                for (c, &b) in row(&bits, tiles, r).iter().enumerate() {
                    let want = d.keeps(seed, 9, 77, plane, tile_row * 16 + r, c);
                    assert_eq!(b >= d.threshold, want, "row {r} column {c}");
                }
            }
        }
    }
}
