//! Counter-based randomness: the one definition of every random number in Ocelli.
//!
//! Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) turns a 128-bit
//! counter and a 64-bit key into 128 random bits. Nothing here has state, so the same number comes out on
//! any device, thread or rank, in any order.

/// Multipliers and key increments of Philox4x32 (Salmon et al. 2011, section 4.3).
const M0: u32 = 0xD251_1F53;
const M1: u32 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// Philox4x32 with 10 rounds: 128 random bits for one counter under one key.
#[inline]
pub fn philox(c: [u32; 4], k: [u32; 2]) -> [u32; 4] {
    philox_rounds::<10>(c, k)
}

/// Philox4x32: 7 rounds are the fewest that pass all tests of BigCrush (Salmon et al. 2011, table 2).
#[inline]
pub fn philox_rounds<const ROUNDS: usize>(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let p0 = u64::from(M0) * u64::from(c[0]);
        let p1 = u64::from(M1) * u64::from(c[2]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(W0), k[1].wrapping_add(W1)];
    }
    c
}

/// A 64-bit hash of a name, the same on every platform and in every version: FNV-1a, then the
/// finaliser of splitmix64, so that names that differ in one letter give unrelated keys.
pub fn hash_name(name: &str) -> u64 {
    let fnv = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    mix(fnv)
}

/// The finaliser of splitmix64: a bijection on 64 bits that spreads every input bit over all output bits.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers for one `(seed, name)`, read by element index or one after the other.
///
/// Used for what is drawn on the host: initial weights, data order, drawn pictures.
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    next: u64,
    buffer: [u32; 4],
}

impl Stream {
    /// The stream of `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Self::keyed(mix(seed ^ 0x0ce1_115e_ed00).wrapping_add(hash_name(name)))
    }

    /// The stream of a 64-bit key of the caller's own.
    pub fn keyed(key: u64) -> Self {
        let key = mix(key);
        Self { key: [key as u32, (key >> 32) as u32], next: 0, buffer: [0; 4] }
    }

    /// The 128 bits of block `i`.
    pub fn block(&self, i: u64) -> [u32; 4] {
        philox([i as u32, (i >> 32) as u32, 0, 0], self.key)
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        let word = (self.next % 4) as usize;
        if word == 0 {
            self.buffer = self.block(self.next / 4);
        }
        self.next += 1;
        self.buffer[word]
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) | u64::from(self.next_u32()) << 32
    }

    /// An integer in `0..n`, without bias (Lemire's multiply and reject).
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a number below 0 does not exist");
        let threshold = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(n);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Shuffles `items` in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Element `i` of a uniform distribution on `[-bound, bound)`, for tensors keyed by element.
    pub fn uniform_at(&self, i: u64, bound: f64) -> f32 {
        let w = self.block(i / 4)[(i % 4) as usize];
        ((f64::from(w) * (1.0 / 4_294_967_296.0) * 2.0 - 1.0) * bound) as f32
    }

    /// Element `i` of a normal distribution with mean 0, for tensors keyed by element (Box and Muller).
    pub fn normal_at(&self, i: u64, std: f64) -> f32 {
        let w = self.block(i / 2);
        let half = 2 * (i % 2) as usize;
        // (w + 0.5) / 2^32 lies strictly inside (0, 1): the logarithm is finite.
        let u = (f64::from(w[half]) + 0.5) * (1.0 / 4_294_967_296.0);
        let v = f64::from(w[half + 1]) * (1.0 / 4_294_967_296.0);
        ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos() * std) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution (kat_vectors, philox 4x32 10 and 7).
    #[test]
    fn philox_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
        assert_eq!(philox_rounds::<7>([0; 4], [0; 2]), [0x5f6f_b709, 0x0d89_3f64, 0x4f12_1f81, 0x4f73_0a48]);
        assert_eq!(
            philox_rounds::<7>([!0; 4], [!0; 2]),
            [0x5207_ddc2, 0x4516_5e59, 0x4d8e_e751, 0x8c52_f662]
        );
    }

    #[test]
    fn moments() {
        let s = Stream::new(1, "moments");
        let n = 100_000;
        let normal: Vec<f64> = (0..n).map(|i| f64::from(s.normal_at(i, 2.0))).collect();
        let mean = normal.iter().sum::<f64>() / n as f64;
        let var = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.03 && (var - 4.0).abs() < 0.08, "mean {mean}, variance {var}");
        let uniform: Vec<f64> = (0..n).map(|i| f64::from(s.uniform_at(i, 3.0))).collect();
        let var = uniform.iter().map(|x| x * x).sum::<f64>() / n as f64;
        assert!((var - 3.0).abs() < 0.05 && uniform.iter().all(|x| x.abs() <= 3.0));
    }

    #[test]
    fn below_covers_the_range_evenly() {
        let mut s = Stream::new(7, "below");
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[s.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }
}
