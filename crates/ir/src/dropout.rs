//! Rule 6: which elements dropout keeps. This file is the only definition; every kernel equals it bit for bit.
//!
//! A decision is a function of (seed, optimiser step, site, sample, plane, row, column) and of nothing else: not
//! of the batch a sample sits in, of padding, of the rank, of fusion. `site` is the hash of the module's path,
//! fixed before any pass; `sample` is the place of the sample in the whole data stream; plane, row and column
//! are logical coordinates (attention: head, query, key; elsewhere: 0, position, feature).
//!
//! One call of Philox (7 rounds) gives eight 16-bit decisions. In attention they are laid out as one thread of a
//! tensor-core `mma.m16n8k16` holds a 16 x 16 tile of accumulators: rows r and r + 8, columns c, c + 1, c + 8, c + 9, with
//! r = lane / 4 and c = 2 (lane % 4). So a fused attention kernel needs one call per thread and tile. Elsewhere a call
//! decides eight neighbours of a row, which is what a thread holds that moves 16 bytes of 16-bit floats at once.

use crate::rng::philox_rounds;

/// Rounds of Philox behind a decision.
pub const ROUNDS: usize = 7;

/// A dropout with its probability as the 16-bit threshold that is really used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dropout {
    /// An element is dropped if its 16 random bits are below this: probability `threshold / 65536`.
    pub threshold: u16,
    /// Hash of the module's path.
    pub site: u64,
}

impl Dropout {
    /// Dropout with probability `p` (nearest multiple of 2^-16) at the module `path`; none if `p` is 0.
    pub fn new(p: f64, path: &str) -> Option<Self> {
        let threshold = (p * 65536.0).round().clamp(0.0, 65535.0) as u16;
        (threshold > 0).then(|| Self { threshold, site: crate::rng::hash_name(path) })
    }

    /// What kept elements are multiplied by: `1 / (1 - p)`, with the probability really used.
    pub fn scale(self) -> f64 {
        1.0 / (1.0 - f64::from(self.threshold) / 65536.0)
    }

    /// The key of this site under a 64-bit seed (given as two words, low first).
    #[inline]
    pub fn key(self, seed: [u32; 2]) -> [u32; 2] {
        [seed[0] ^ self.site as u32, seed[1] ^ (self.site >> 32) as u32]
    }

    /// True if the element at (row, col) of `sample` is kept at optimiser step `step`.
    pub fn keeps(self, seed: [u32; 2], step: u32, sample: u32, row: usize, col: usize) -> bool {
        let words = row_words(self.key(seed), step, sample, row, col / 8);
        (words[col % 8 / 2] >> (16 * (col % 2))) as u16 >= self.threshold
    }

    /// In attention: true if the element at (plane, row, col) is kept.
    pub fn keeps_in_tile(
        self,
        seed: [u32; 2],
        step: u32,
        sample: u32,
        plane: usize,
        row: usize,
        col: usize,
    ) -> bool {
        let lane = (row % 8) * 4 + (col % 8) / 2;
        let words = tile_words(self.key(seed), step, sample, plane, row / 16, col / 16, lane);
        bits(words, (row % 16) / 8, (col % 16) / 8, col % 2) >= self.threshold
    }
}

/// The eight decisions (16 bits each) of columns `8 group ..` of a row: word `j` holds columns `2 j` (low half) and
/// `2 j + 1`.
///
/// Counter: word 0 = row; word 1 = group; word 2 = sample; word 3 = step.
#[inline]
pub fn row_words(key: [u32; 2], step: u32, sample: u32, row: usize, group: usize) -> [u32; 4] {
    philox_rounds::<ROUNDS>([row as u32, group as u32, sample, step], key)
}

/// The eight decisions (16 bits each) of one lane of one 16 x 16 tile.
///
/// Counter: word 0 = tile row << 16 | tile column (sides up to 2^20 elements); word 1 = plane << 5 | lane;
/// word 2 = sample; word 3 = step.
#[inline]
pub fn tile_words(
    key: [u32; 2],
    step: u32,
    sample: u32,
    plane: usize,
    tile_row: usize,
    tile_col: usize,
    lane: usize,
) -> [u32; 4] {
    philox_rounds::<ROUNDS>(
        [(tile_row << 16 | tile_col) as u32, (plane << 5 | lane) as u32, sample, step],
        key,
    )
}

/// The 16 bits that decide the element in the lower (`down` = 1) or upper half of rows, right or left half of
/// columns, odd or even column, of a lane's eight.
#[inline]
pub fn bits(words: [u32; 4], down: usize, right: usize, odd: usize) -> u16 {
    (words[right * 2 + down] >> (16 * odd)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Step, sample, plane, row, column.
    type At = (u32, u32, usize, usize, usize);

    /// Any other coordinate, step or sample gives an unrelated pattern: both drop 1 in 100.
    fn is_independent(keeps: impl Fn(At) -> bool, others: &[At]) {
        let n = 512;
        let all = || (0..n).flat_map(|r| (0..n).map(move |c| (r, c)));
        let share = |both: usize| both as f64 / (n * n) as f64;
        let rate = share(all().filter(|&(r, c)| !keeps((3, 5, 0, r, c))).count());
        assert!((rate - 0.1).abs() < 0.003, "{rate}");
        for &(step, sample, plane, dr, dc) in others {
            let both = all()
                .filter(|&(r, c)| !keeps((3, 5, 0, r, c)) && !keeps((step, sample, plane, r + dr, c + dc)));
            let both = share(both.count());
            assert!((both - 0.01).abs() < 0.002, "{:?}: {both}", (step, sample, plane, dr, dc));
        }
    }

    #[test]
    fn rate_and_independence_of_neighbours() {
        let d = Dropout::new(0.1, "decoder.blocks.0.attn").unwrap();
        let near = [(4, 5, 0, 0, 0), (3, 6, 0, 0, 0), (3, 5, 0, 8, 0), (3, 5, 0, 0, 1), (3, 5, 0, 0, 8)];
        is_independent(|(step, sample, _, r, c)| d.keeps([1, 2], step, sample, r, c), &near);
        let near = [&near[..], &[(3, 5, 1, 0, 0)]].concat();
        is_independent(|(step, sample, p, r, c)| d.keeps_in_tile([1, 2], step, sample, p, r, c), &near);
    }

    #[test]
    fn scale_uses_the_real_probability() {
        let d = Dropout::new(0.5, "x").unwrap();
        assert_eq!(d.scale(), 2.0);
        assert!(Dropout::new(0.0, "x").is_none());
    }
}
