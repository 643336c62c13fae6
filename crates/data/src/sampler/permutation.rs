//! A random order of `0..n` that is computed place by place and never stored, so that a set of four thousand
//! million drawn pictures costs what a set of three costs.
//!
//! An unbalanced Feistel network whose round function is Philox is a bijection on the smallest power of two
//! that holds `n`; a result outside of `0..n` is put in again until one falls inside ("cycle walking", Black
//! and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), at most twice on average.
use ocelli_ir::rng::{hash_name, mix, philox};

/// Rounds of the network. Four suffice for large halves (Luby and Rackoff 1988); halves of one or two bits
/// need more, see the test of evenness below.
const ROUNDS: u32 = 12;

/// A bijection on `0..n`, one for each (seed, name, epoch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permutation {
    n: u64,
    key: [u32; 2],
    epoch: u64,
    /// Bits of the low and of the high half.
    low: u32,
    high: u32,
}

impl Permutation {
    pub(crate) fn new(n: u64, seed: u64, name: &str, epoch: u64) -> Self {
        let key = mix(seed.wrapping_add(hash_name(name)));
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Self { n, key: [key as u32, (key >> 32) as u32], epoch, low: bits.div_ceil(2), high: bits / 2 }
    }

    /// The number of places.
    pub(crate) fn len(&self) -> u64 {
        self.n
    }

    /// What stands at place `i`.
    ///
    /// # Panics
    /// If `i` is not below `n`: from outside, walking the cycle might not come back.
    pub(crate) fn at(&self, i: u64) -> u64 {
        assert!(i < self.n, "place {i} of an order of {}", self.n);
        let mut x = self.network(i);
        while x >= self.n {
            x = self.network(x);
        }
        x
    }

    /// The bijection on `0..2^(low + high)`: each round changes one half by a function of the other.
    fn network(&self, x: u64) -> u64 {
        let mask = |bits: u32| ((1u64 << bits) - 1) as u32;
        let (mut low, mut high) = (x as u32 & mask(self.low), (x >> self.low) as u32);
        for round in (0..ROUNDS).step_by(2) {
            high ^= self.word(low, round) & mask(self.high);
            low ^= self.word(high, round + 1) & mask(self.low);
        }
        u64::from(high) << self.low | u64::from(low)
    }

    fn word(&self, half: u32, round: u32) -> u32 {
        philox([half, round, self.epoch as u32, (self.epoch >> 32) as u32], self.key)[0]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_bijection(n in 1u64..3000, seed: u64, epoch: u64) {
            let p = Permutation::new(n, seed, "test", epoch);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                prop_assert!(!std::mem::replace(&mut seen[p.at(i) as usize], true));
            }
        }

        #[test]
        fn huge_sets_stay_in_range(n in 1u64 << 31..=u64::from(u32::MAX), seed: u64, i: u64) {
            prop_assert!(Permutation::new(n, seed, "test", 3).at(i % n) < n);
        }
    }

    #[test]
    fn whole_64_bit_range() {
        let p = Permutation::new(u64::MAX, 1, "test", 0);
        assert!([0, 1, u64::MAX / 2, u64::MAX - 1].map(|i| p.at(i)).iter().all(|&x| x < u64::MAX));
    }

    /// Every row comes to every place about equally often, and neighbours do not stay neighbours, for sets
    /// as small as a user's first one.
    #[test]
    fn orders_are_even() {
        for n in [2u64, 3, 5, 7, 10, 16, 33] {
            let epochs = 400 * n;
            let mut counts = vec![0u32; (n * n) as usize];
            let mut follow = 0;
            for epoch in 0..epochs {
                let p = Permutation::new(n, 1337, "test", epoch);
                let order: Vec<u64> = (0..n).map(|i| p.at(i)).collect();
                order.iter().enumerate().for_each(|(i, &x)| counts[i * n as usize + x as usize] += 1);
                follow += order.windows(2).filter(|w| w[1] == w[0] + 1).count() as u64;
            }
            // Each count is about 400 with a deviation of 20: allow 5 deviations.
            assert!(counts.iter().all(|c| c.abs_diff(400) < 100), "n {n}: {counts:?}");
            // A random order of n has (n - 1) / n pairs of neighbours on average.
            let expected = epochs as f64 * (n - 1) as f64 / n as f64;
            assert!((follow as f64 / expected - 1.0).abs() < 0.1, "n {n}: {follow} of {expected}");
        }
    }

    /// All 24 orders of 4 rows, and all 120 of 5, come about equally often.
    #[test]
    fn small_orders_are_all_reached() {
        for (n, orders) in [(3u64, 6), (4, 24), (5, 120)] {
            let mut counts = std::collections::BTreeMap::new();
            for epoch in 0..orders * 200 {
                let p = Permutation::new(n, 7, "test", epoch);
                *counts.entry((0..n).map(|i| p.at(i)).collect::<Vec<_>>()).or_insert(0u32) += 1;
            }
            assert_eq!(counts.len() as u64, orders, "n {n}");
            assert!(counts.values().all(|c| c.abs_diff(200) < 80), "n {n}: {counts:?}");
        }
    }
}
