//! METEOR with exact matches alone.
//!
//! The published figures come from METEOR 1.5, a Java program with tables of paraphrases and synonyms; they cannot be
//! had without it. This is the first METEOR (Banerjee and Lavie 2005, <https://aclanthology.org/W05-0909>) with its first
//! module, equal to NLTK's `meteor_score` without stemmer and synonyms. It has a name of its own since its values are
//! others: higher for captions that say the same in the same words.

use crate::{Pair, mean};
use std::collections::HashMap;

/// Weight of precision in the mean with recall, and shape and weight of the penalty for words out of order.
const ALPHA: f64 = 0.9;
const BETA: i32 = 3;
const GAMMA: f64 = 0.5;

/// METEOR of the best reference of each pair, 0 to 1 (a caption equal to its reference stays a little below), the mean
/// over pairs. Words match if they are the same token.
pub fn meteor_exact(pairs: &[Pair]) -> f64 {
    mean(pairs, |pair| pair.references().map(|r| score(pair.candidate(), r)).fold(0.0, f64::max))
}

fn score(said: &[String], reference: &[String]) -> f64 {
    let matches = matches(said, reference);
    if matches.is_empty() {
        return 0.0;
    }
    let count = matches.len() as f64;
    let (precision, recall) = (count / said.len() as f64, count / reference.len() as f64);
    let f = precision * recall / (ALPHA * precision + (1.0 - ALPHA) * recall);
    let breaks = matches.windows(2).filter(|m| (m[1].0 + 1, m[1].1 + 1) != m[0]).count();
    f * (1.0 - GAMMA * ((breaks + 1) as f64 / count).powi(BETA))
}

/// Places of matching tokens in both, from the end: each with the last that is still free.
fn matches(said: &[String], reference: &[String]) -> Vec<(usize, usize)> {
    let mut free: HashMap<&str, Vec<usize>> = HashMap::new();
    reference.iter().enumerate().for_each(|(i, token)| free.entry(token).or_default().push(i));
    let found = said.iter().enumerate().rev();
    found.filter_map(|(i, token)| Some((i, free.get_mut(token.as_str())?.pop()?))).collect()
}
