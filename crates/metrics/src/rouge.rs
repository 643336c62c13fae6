//! ROUGE-L (Lin 2004, <https://aclanthology.org/W04-1013>) as `pycocoevalcap` computes it.

use crate::{Pair, mean};

/// How much more recall counts than precision.
const BETA: f64 = 1.2;

/// ROUGE-L, 0 to 1: by the longest common subsequence of tokens, the best precision and the best recall among the
/// references of each pair taken, the mean over pairs.
pub fn rouge_l(pairs: &[Pair]) -> f64 {
    mean(pairs, |pair| {
        let said = pair.candidate();
        let share = |common: usize, of: usize| if of == 0 { 0.0 } else { common as f64 / of as f64 };
        let (mut precision, mut recall) = (0.0_f64, 0.0_f64);
        for reference in pair.references() {
            // Nothing said where nothing was to be said is right.
            if said.is_empty() && reference.is_empty() {
                return 1.0;
            }
            let common = longest_common(reference, said);
            precision = precision.max(share(common, said.len()));
            recall = recall.max(share(common, reference.len()));
        }
        let weighted = recall + BETA * BETA * precision;
        if weighted > 0.0 { (1.0 + BETA * BETA) * precision * recall / weighted } else { 0.0 }
    })
}

/// Length of the longest subsequence that both have.
fn longest_common(a: &[String], b: &[String]) -> usize {
    // One row of the table: `row[j]` is the length for the tokens of `a` so far and the first `j` of `b`.
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}
