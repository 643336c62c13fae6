//! BLEU over a whole set (Papineni et al. 2002, <https://aclanthology.org/P02-1040>), with the constants of
//! `pycocoevalcap`.

use crate::Pair;
use crate::ngrams::{LONGEST, counts};
use std::collections::BTreeMap;

/// Added below each fraction, and above: without it an empty candidate would divide by 0. The values are
/// `pycocoevalcap`'s.
const SMALL: f64 = 1e-9;
const TINY: f64 = 1e-15;

/// Sums over pairs.
#[derive(Default)]
struct Sums {
    /// Tokens of the candidates.
    candidate: usize,
    /// Tokens of the references that are closest in length, the shorter of two equally close ones.
    reference: usize,
    /// Runs of each length in the candidates.
    said: [usize; LONGEST],
    /// Of them, those that a reference has, each as often as the reference that has it most often.
    right: [u32; LONGEST],
}

impl Sums {
    fn add(&mut self, pair: &Pair) {
        let length = pair.candidate().len();
        let closest = pair.references().map(<[String]>::len).min_by_key(|n| (n.abs_diff(length), *n));
        self.candidate += length;
        self.reference += closest.unwrap_or(0);
        let mut most = BTreeMap::new();
        for (run, n) in pair.references().flat_map(counts) {
            most.entry(run).and_modify(|m: &mut u32| *m = n.max(*m)).or_insert(n);
        }
        for (run, n) in counts(pair.candidate()) {
            self.right[run.len() - 1] += most.get(run).map_or(0, |most| n.min(*most));
        }
        for (i, said) in self.said.iter_mut().enumerate() {
            *said += length.saturating_sub(i);
        }
    }
}

/// BLEU-1 to BLEU-4, each 0 to 1: over the whole set, against the references of closest length.
pub fn bleu(pairs: &[Pair]) -> [f64; LONGEST] {
    let mut sums = Sums::default();
    pairs.iter().for_each(|pair| sums.add(pair));
    let ratio = (sums.candidate as f64 + TINY) / (sums.reference as f64 + SMALL);
    let brevity = if ratio < 1.0 { (1.0 - 1.0 / ratio).exp() } else { 1.0 };
    let mut product = 1.0;
    std::array::from_fn(|i| {
        product *= (f64::from(sums.right[i]) + TINY) / (sums.said[i] as f64 + SMALL);
        product.powf(1.0 / (i + 1) as f64) * brevity
    })
}
