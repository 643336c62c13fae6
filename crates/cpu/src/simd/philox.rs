//! Dropout decisions for whole tiles: sixteen Philox calls side by side. Equal, bit for bit, to
//! [`ocelli_ir::dropout`], which says what they mean.

/// Calls made together: the lanes of a tile.
const CALLS: usize = 32;
/// Words of decisions in one row of a tile, two columns to a word.
const ROW_WORDS: usize = 8;

/// Philox calls whose counters differ in word 1 alone: `first`, `first + 1`, ...
///
/// Each word lies in the low half of 64 bits, ready for the next widening product; the high half is left as it
/// falls.
#[inline(always)]
fn philox(c0: u32, first: u32, c2: u32, c3: u32, mut k: [u32; 2]) -> [[u64; CALLS]; 4] {
    let mut c = [c0, first, c2, c3].map(|w| [u64::from(w); CALLS]);
    for (i, c) in c[1].iter_mut().enumerate() {
        *c += i as u64;
    }
    for _ in 0..10 {
        let [k0, k1] = k.map(u64::from);
        #[allow(clippy::needless_range_loop)] // four arrays in step
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
    /// The 16-bit decisions of 16 rows and `16 tiles` columns. Row `r` begins at word `8 r tiles` of `out`; a
    /// word holds two columns, the even one in its low half.
    #[inline(always)]
    pub fn bits(&self, tiles: usize, out: &mut [u32]) {
        let pitch = tiles * ROW_WORDS;
        for tile in 0..tiles {
            let c0 = (self.tile_row << 16 | tile) as u32;
            let w = philox(c0, (self.plane << 5) as u32, self.sample, self.step, self.key);
            // Lane 4 r + q decides rows r and r + 8, columns 2 q, 2 q + 1 and 8 further.
            for r in 0..8 {
                for (word, (down, right)) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().enumerate() {
                    let at = (r + 8 * down) * pitch + tile * ROW_WORDS + right * 4;
                    for (out, &w) in out[at..at + 4].iter_mut().zip(&w[word][4 * r..4 * r + 4]) {
                        *out = w as u32;
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
