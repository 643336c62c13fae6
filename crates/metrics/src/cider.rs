//! CIDEr (Vedantam et al. 2015, <https://arxiv.org/abs/1411.5726>) as `pycocoevalcap` computes it: CIDEr-D without
//! stemming, how common a run of words is counted over the references of the set itself.

use crate::ngrams::{LONGEST, counts};
use crate::{Pair, mean};
use std::collections::{BTreeSet, HashMap};

/// Deviation, in tokens, of the penalty for another length.
const SIGMA: f64 = 6.0;

/// A caption's runs, each weighted by how often it is in the caption and how rare it is in the set.
struct Weighted<'a> {
    weights: HashMap<&'a [String], f64>,
    /// The runs in order, so that sums have the same bits in every run of the program.
    order: Vec<&'a [String]>,
    /// Length of the vector of each run length.
    norm: [f64; LONGEST],
    /// Runs of two tokens: what the package takes for the caption's length.
    pairs: f64,
}

/// In how many pairs' references each run is.
type Documents<'a> = HashMap<&'a [String], f64>;

impl<'a> Weighted<'a> {
    fn new(tokens: &'a [String], documents: &Documents<'_>, all: usize) -> Self {
        let mut norm = [0.0; LONGEST];
        let (mut weights, mut order) = (HashMap::new(), Vec::new());
        for (run, n) in counts(tokens) {
            let found_in = documents.get(run).map_or(1.0, |n| n.max(1.0));
            let weight = f64::from(n) * ((all as f64).ln() - found_in.ln());
            norm[run.len() - 1] += weight * weight;
            weights.insert(run, weight);
            order.push(run);
        }
        let pairs = tokens.len().saturating_sub(1) as f64;
        Self { weights, order, norm: norm.map(f64::sqrt), pairs }
    }

    /// How alike a candidate is to a reference, 0 to 1: the mean over the lengths of runs.
    fn alike(&self, reference: &Self) -> f64 {
        let mut products = [0.0; LONGEST];
        for run in &self.order {
            let there = reference.weights.get(run).copied().unwrap_or(0.0);
            products[run.len() - 1] += self.weights[run].min(there) * there;
        }
        let cosines = (0..LONGEST).map(|i| {
            let norms = self.norm[i] * reference.norm[i];
            if norms > 0.0 { products[i] / norms } else { products[i] }
        });
        let apart = self.pairs - reference.pairs;
        cosines.sum::<f64>() / LONGEST as f64 * (-apart * apart / (2.0 * SIGMA * SIGMA)).exp()
    }
}

/// CIDEr, 0 to 10. Words that every picture of the set has count nothing, so a set of one picture scores 0, and scores of
/// different sets cannot be compared.
pub fn cider(pairs: &[Pair]) -> f64 {
    let mut documents = Documents::new();
    for pair in pairs {
        let runs: BTreeSet<&[String]> = pair.references().flat_map(|r| counts(r).into_keys()).collect();
        runs.into_iter().for_each(|run| *documents.entry(run).or_default() += 1.0);
    }
    mean(pairs, |pair| {
        let candidate = Weighted::new(pair.candidate(), &documents, pairs.len());
        let alike = |r| candidate.alike(&Weighted::new(r, &documents, pairs.len()));
        10.0 * pair.references().map(alike).sum::<f64>() / pair.references().len().max(1) as f64
    })
}
