//! Lanes as a register of 256 bits. The compiler makes such code of arrays too, but takes them through memory to
//! transpose, which costs twice the time.

use std::arch::x86_64::__m256i;
use std::ops::{Add, Sub};

use pulp::x86::V3;
use pulp::{NullaryFnOnce, cast};

use super::{Lanes, POINT, Row};

/// A row of blocks, to be transformed by a machine that has these instructions.
pub(super) struct Vectorized<'a>(pub(super) V3, pub(super) Row<'a>);

impl NullaryFnOnce for Vectorized<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.transform::<Avx2>(self.0);
    }
}

#[derive(Clone, Copy)]
struct Avx2(V3, __m256i);

impl Avx2 {
    #[inline(always)]
    fn with(self, lanes: __m256i) -> Self {
        Self(self.0, lanes)
    }
}

impl Add for Avx2 {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.with(self.0.avx2._mm256_add_epi32(self.1, other.1))
    }
}

impl Sub for Avx2 {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.with(self.0.avx2._mm256_sub_epi32(self.1, other.1))
    }
}

impl Lanes for Avx2 {
    type Token = V3;

    #[inline(always)]
    fn load(simd: V3, coefficients: &[i16; 8], factors: &[i16; 8]) -> Self {
        let product = simd.sse2._mm_mullo_epi16(cast(*coefficients), cast(*factors));
        Self(simd, simd.avx2._mm256_cvtepi16_epi32(product))
    }

    #[inline(always)]
    fn times(self, factor: i32) -> Self {
        self.with(self.0.avx2._mm256_mullo_epi32(self.1, cast([factor; 8])))
    }

    #[inline(always)]
    fn up<const N: i32>(self) -> Self {
        self.with(self.0.avx2._mm256_slli_epi32::<N>(self.1))
    }

    #[inline(always)]
    fn down<const N: i32>(self) -> Self {
        let half = self.with(cast([1i32 << (N - 1); 8]));
        self.with(self.0.avx2._mm256_srai_epi32::<N>((self + half).1))
    }

    #[inline(always)]
    fn wrapped(self) -> Self {
        self.with(self.0.avx2._mm256_srai_epi32::<16>(self.up::<16>().1))
    }

    #[inline(always)]
    fn wrapped_up(self) -> Self {
        self.with(self.0.avx2._mm256_srai_epi32::<{ 16 - POINT }>(self.up::<16>().1))
    }

    #[inline(always)]
    fn narrow(self) -> Self {
        let avx2 = self.0.avx2;
        let (least, most) = (cast([i32::from(i16::MIN); 8]), cast([i32::from(i16::MAX); 8]));
        self.with(avx2._mm256_min_epi32(avx2._mm256_max_epi32(self.1, least), most))
    }

    #[inline(always)]
    fn transposed([a, b, c, d, e, f, g, h]: [Self; 8]) -> [Self; 8] {
        let avx2 = a.0.avx2;
        // Numbers, then pairs of them, then halves of registers change places.
        let ones = |a: Self, b: Self| {
            (a.with(avx2._mm256_unpacklo_epi32(a.1, b.1)), a.with(avx2._mm256_unpackhi_epi32(a.1, b.1)))
        };
        let twos = |a: Self, b: Self| {
            (a.with(avx2._mm256_unpacklo_epi64(a.1, b.1)), a.with(avx2._mm256_unpackhi_epi64(a.1, b.1)))
        };
        let halves = |a: Self, b: Self| {
            let low = avx2._mm256_permute2x128_si256::<0x20>(a.1, b.1);
            (a.with(low), a.with(avx2._mm256_permute2x128_si256::<0x31>(a.1, b.1)))
        };
        let ((a, b), (c, d), (e, f), (g, h)) = (ones(a, b), ones(c, d), ones(e, f), ones(g, h));
        let ((a, c), (b, d), (e, g), (f, h)) = (twos(a, c), twos(b, d), twos(e, g), twos(f, h));
        let ((a, e), (c, g), (b, f), (d, h)) = (halves(a, e), halves(c, g), halves(b, f), halves(d, h));
        [a, c, b, d, e, g, f, h]
    }

    #[inline(always)]
    fn samples([a, b, c, d, e, f, g, h]: [Self; 8]) -> [[u8; 8]; 8] {
        let avx2 = a.0.avx2;
        // Four rows to signed bytes, those of each row in two places, put together and made unsigned.
        let four = |a: Self, b: Self, c: Self, d: Self| -> __m256i {
            let (ab, cd) = (avx2._mm256_packs_epi32(a.1, b.1), avx2._mm256_packs_epi32(c.1, d.1));
            let bytes = avx2._mm256_packs_epi16(ab, cd);
            let bytes = avx2._mm256_permutevar8x32_epi32(bytes, cast([0i32, 4, 1, 5, 2, 6, 3, 7]));
            avx2._mm256_xor_si256(bytes, cast([0x80u8; 32]))
        };
        cast([four(a, b, c, d), four(e, f, g, h)])
    }
}
