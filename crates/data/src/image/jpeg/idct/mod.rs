//! Coefficients to samples: the inverse cosine transform of 8 x 8 blocks, in whole numbers, as Loeffler, Ligtenberg
//! and Moschytz have it (1989), with the rounding of libjpeg's accurate one.
//!
//! Invariant: for whatever coefficients and factors, the samples are those of libjpeg-turbo's vector code, which
//! has 16 bits at some places; the two kinds of [`Lanes`] agree to the bit; nothing overflows with a panic.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod plain;

use std::ops::{Add, Sub};

/// A block of coefficients or factors, row by row: the first row has the lowest vertical frequency.
pub(super) type Block = [i16; 64];

/// Eight numbers of 32 bits that go through the same steps, one for each column or row. Sums and products wrap.
trait Lanes: Copy + Add<Output = Self> + Sub<Output = Self> {
    /// What the machine must have for it.
    type Token: Copy;

    /// Coefficients times their factors, of 16 bits as libjpeg-turbo has it.
    fn load(token: Self::Token, coefficients: &[i16; 8], factors: &[i16; 8]) -> Self;
    /// Each times `factor`.
    fn times(self, factor: i32) -> Self;
    /// Each times `2^N`.
    fn up<const N: i32>(self) -> Self;
    /// Each divided by `2^N` and rounded.
    fn down<const N: i32>(self) -> Self;
    /// The low 16 bits of each, as a number.
    fn wrapped(self) -> Self;
    /// Likewise, times `2^POINT`.
    fn wrapped_up(self) -> Self;
    /// Each brought to the nearest number of 16 bits.
    fn narrow(self) -> Self;
    /// Rows become columns.
    fn transposed(rows: [Self; 8]) -> [Self; 8];
    /// Levels around 0 as samples.
    fn samples(rows: [Self; 8]) -> [[u8; 8]; 8];
}

/// Bits behind the point of the constants below.
const POINT: i32 = 13;

/// A constant of the transform, rounded to [`POINT`] bits.
const fn fixed(x: f64) -> i32 {
    (x * (1 << POINT) as f64 + 0.5) as i32
}

/// Transforms a row of blocks. `factors` are those of the quantisation; `out` gets eight rows of `8 * blocks.len()`
/// samples.
pub(super) fn transform(blocks: &[Block], factors: &Block, out: &mut [u8]) {
    let row = Row { blocks, factors, out };
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.vectorize(avx2::Vectorized(simd, row));
    }
    row.transform::<plain::Plain>(());
}

/// A row of blocks, and where its samples go.
struct Row<'a> {
    blocks: &'a [Block],
    factors: &'a Block,
    out: &'a mut [u8],
}

impl Row<'_> {
    #[inline(always)]
    fn transform<L: Lanes>(self, token: L::Token) {
        let pitch = self.blocks.len() * 8;
        for (i, block) in self.blocks.iter().enumerate() {
            let samples = one::<L>(token, block, self.factors);
            for (row, samples) in self.out.chunks_exact_mut(pitch).zip(&samples) {
                row[i * 8..][..8].copy_from_slice(samples);
            }
        }
    }
}

#[inline(always)]
fn one<L: Lanes>(token: L::Token, block: &Block, factors: &Block) -> [[u8; 8]; 8] {
    let any = |coefficients: &[i16]| coefficients.iter().fold(0, |any, c| any | c) != 0;
    let below = any(&block[8..]);
    if !below && !any(&block[1..8]) {
        // Flat: most blocks of colour are.
        let level = i32::from(block[0].wrapping_mul(factors[0]) << 2);
        return [[(((level + 16) >> 5) + 128).clamp(0, 255) as u8; 8]; 8];
    }
    let ((block, []), (factors, [])) = (block.as_chunks::<8>(), factors.as_chunks::<8>()) else {
        return [[0; 8]; 8];
    };
    let load = |k: usize| L::load(token, &block[k], &factors[k]);
    let rows = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
    // Two bits are kept behind the point between the passes.
    let rows = if below {
        let [a, b, c, d, e, f, g, h] = pass::<L, { POINT - 2 }>(rows);
        [a.narrow(), b.narrow(), c.narrow(), d.narrow(), e.narrow(), f.narrow(), g.narrow(), h.narrow()]
    } else {
        // All rows alike; what leaves 16 bits wraps here, and not above.
        [rows[0].up::<2>().wrapped(); 8]
    };
    L::samples(L::transposed(pass::<L, { POINT + 2 + 3 }>(L::transposed(rows))))
}

/// One dimension: from frequencies 0 to 7 to places, each number divided by `2^SHIFT` and rounded.
#[inline(always)]
fn pass<L: Lanes, const SHIFT: i32>([x0, x1, x2, x3, x4, x5, x6, x7]: [L; 8]) -> [L; 8] {
    let [a, b, c, d] = even([x0, x2, x4, x6]);
    let [e, f, g, h] = odd([x1, x3, x5, x7]);
    let sums = [a + e, b + f, c + g, d + h, d - h, c - g, b - f, a - e];
    let [a, b, c, d, e, f, g, h] = sums;
    [
        a.down::<SHIFT>(),
        b.down::<SHIFT>(),
        c.down::<SHIFT>(),
        d.down::<SHIFT>(),
        e.down::<SHIFT>(),
        f.down::<SHIFT>(),
        g.down::<SHIFT>(),
        h.down::<SHIFT>(),
    ]
}

/// The part of the even frequencies 0, 2, 4, 6 in places 0 to 3 (and mirrored in 7 to 4).
#[inline(always)]
fn even<L: Lanes>([x0, x2, x4, x6]: [L; 4]) -> [L; 4] {
    // A rotation by 3/8 of pi costs three products instead of four.
    let shared = (x2 + x6).times(fixed(0.541_196_100));
    let b = shared + x2.times(fixed(0.765_366_865));
    let c = shared - x6.times(fixed(1.847_759_065));
    let (sum, difference) = ((x0 + x4).wrapped_up(), (x0 - x4).wrapped_up());
    [sum + b, difference + c, difference - c, sum - b]
}

/// The part of the odd frequencies 1, 3, 5, 7 in places 0 to 3 (and with the other sign in 7 to 4).
#[inline(always)]
fn odd<L: Lanes>([x1, x3, x5, x7]: [L; 4]) -> [L; 4] {
    let (far, near) = ((x3 + x7).wrapped(), (x1 + x5).wrapped());
    let shared = (far + near).times(fixed(1.175_875_602));
    let (a, b) = ((x1 + x7).times(-fixed(0.899_976_223)), (x3 + x5).times(-fixed(2.562_915_447)));
    let c = shared - far.times(fixed(1.961_570_560));
    let d = shared - near.times(fixed(0.390_180_644));
    [
        x1.times(fixed(1.501_321_110)) + a + d,
        x3.times(fixed(3.072_711_026)) + b + c,
        x5.times(fixed(2.053_119_869)) + b + d,
        x7.times(fixed(0.298_631_336)) + a + c,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of coefficients of every size, and factors; the last ones overflow wherever something can.
    fn blocks() -> Vec<(Block, Block)> {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as i32
        };
        (0..4_000)
            .map(|i| {
                let (kept, size) = (1 + random() as usize % 64, 1 << (i % 16));
                let mut block = [0; 64];
                block[..kept].fill_with(|| (random() % (2 * size) - size) as i16);
                (block, std::array::from_fn(|_| (1 + random() % if i % 2 == 0 { 20 } else { 255 }) as i16))
            })
            .collect()
    }

    /// The definition, in f64: cosines and all.
    fn exact(block: &Block, factors: &Block) -> [f64; 64] {
        let wave = |place: usize, k: usize| {
            let angle = std::f64::consts::PI * ((2 * place + 1) * k) as f64 / 16.0;
            angle.cos() * if k == 0 { 0.5f64.sqrt() } else { 1.0 } / 2.0
        };
        std::array::from_fn(|i| {
            let sum: f64 = (0..64)
                .map(|k| {
                    f64::from(block[k]) * f64::from(factors[k]) * wave(i / 8, k / 8) * wave(i % 8, k % 8)
                })
                .sum();
            (sum + 128.0).clamp(0.0, 255.0)
        })
    }

    #[test]
    fn samples_are_those_of_the_definition() {
        // Larger ones leave 16 bits on the way.
        let small = |(block, factors): &(Block, Block)| {
            let products = block.iter().zip(factors).map(|(c, f)| (i32::from(*c) * i32::from(*f)).abs());
            products.sum::<i32>() <= 4_000
        };
        let blocks: Vec<_> = blocks().into_iter().filter(small).collect();
        assert!(blocks.len() > 200, "{}", blocks.len());
        for (block, factors) in blocks {
            let found = one::<plain::Plain>((), &block, &factors);
            for (found, wanted) in found.as_flattened().iter().zip(exact(&block, &factors)) {
                assert!(
                    (f64::from(*found) - wanted).abs() < 0.6,
                    "{found} for {wanted}: {block:?} x {factors:?}"
                );
            }
        }
    }

    #[test]
    fn both_kinds_of_lanes_agree() {
        for (block, factors) in blocks() {
            let wanted = one::<plain::Plain>((), &block, &factors);
            let mut found = [0; 64];
            transform(&[block], &factors, &mut found);
            assert_eq!(found, wanted.as_flattened(), "{block:?} x {factors:?}");
        }
    }
}
