//! Which runs of 1 to 4 tokens a caption has, and how often.

use std::collections::BTreeMap;

/// The longest run that is counted.
pub const LONGEST: usize = 4;

/// Counts by run. Ordered, so that sums over them have the same bits in every run of the program.
pub type Counts<'a> = BTreeMap<&'a [String], u32>;

/// All runs of a caption.
pub fn counts(tokens: &[String]) -> Counts<'_> {
    let mut counts = Counts::new();
    for run in (1..=LONGEST).flat_map(|n| tokens.windows(n)) {
        *counts.entry(run).or_default() += 1;
    }
    counts
}
