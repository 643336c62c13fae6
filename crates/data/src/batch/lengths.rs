//! How long the rows of a batch are (`data_config.padding`, `max_seq_length`).
//!
//! A program is compiled for each padded length, so there are at most [`MAX_BUCKETS`] of them, computed once
//! from the captions of the set. The length of a batch follows from the caption lengths of the whole *global*
//! batch, known without decoding: every rank computes the same.
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::scan::ContentStats;
use crate::text::count;

/// The largest number of padded lengths, and so of compiled programs.
pub const MAX_BUCKETS: usize = 6;

/// Shares of captions that fit into the shorter buckets. The longest caption of a batch of 16 to 64 lies
/// mostly in the top tenth, so the buckets are dense there; one very long caption gets a bucket of its own
/// instead of padding every batch.
const QUANTILES: [f64; MAX_BUCKETS - 1] = [0.5, 0.9, 0.97, 0.99, 0.999];

/// How captions are padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Padding {
    /// To the longest caption of the global batch (rounded up to a bucket).
    Longest,
    /// Always to `max_seq_length`, or to the longest caption of the set if that is null.
    MaxLength,
}

/// The two lengths of a batch, in tokens, the image not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLength {
    /// What `padding` asks for. The published loss counts padding up to here. Never 0.
    pub counted: usize,
    /// `counted` rounded up to a bucket: the `T` of the arrays.
    pub padded: usize,
}

/// The padded lengths of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    padding: Padding,
    /// Ascending, never empty; the last is the limit.
    buckets: Vec<usize>,
}

/// Why no lengths can be chosen.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LengthsError {
    /// `max_seq_length` of 0.
    #[error("data_config.max_seq_length is 0; a caption needs at least 1 place")]
    Zero,
    /// No row has a caption.
    #[error("there is no usable caption in the {} looked at", count(*rows, "row"))]
    NoCaptions {
        /// How many were looked at.
        rows: usize,
    },
}

impl Lengths {
    /// Chooses the padded lengths.
    ///
    /// The limit, above which captions are cut, is `max_seq_length`; with `longest`, no more than the longest
    /// caption. If `stats` saw only a sample of the rows and `max_seq_length` is null, a quarter is added, as
    /// a longer caption may come.
    ///
    /// Buckets (`longest` only): the lengths that hold 50, 90, 97, 99 and 99.9 % of the captions, each raised
    /// until it is, with the image's place, a multiple of 8; and the limit itself. Equal ones fall together.
    pub fn plan(
        padding: Padding,
        max_seq_length: Option<usize>,
        stats: &ContentStats,
    ) -> Result<Self, LengthsError> {
        if max_seq_length == Some(0) {
            return Err(LengthsError::Zero);
        }
        let longest = stats.longest();
        if longest == 0 {
            return Err(LengthsError::NoCaptions { rows: stats.scanned });
        }
        let enough = if stats.is_sample() { aligned(longest + longest / 4) } else { longest };
        let limit = match (padding, max_seq_length) {
            (Padding::Longest, Some(max)) => max.min(enough),
            (Padding::MaxLength, Some(max)) => max,
            (_, None) => enough,
        };
        let mut buckets = vec![limit];
        if padding == Padding::Longest {
            buckets.extend(QUANTILES.iter().map(|&share| aligned(quantile(stats, share)).min(limit)));
            buckets.sort_unstable();
            buckets.dedup();
        }
        Ok(Self { padding, buckets })
    }

    /// The padded lengths, ascending: a program is compiled for each.
    pub fn buckets(&self) -> &[usize] {
        &self.buckets
    }

    /// The longest text; longer captions are cut.
    pub fn limit(&self) -> usize {
        self.buckets[self.buckets.len() - 1]
    }

    /// The length of a global batch whose longest caption has `longest` characters.
    pub fn batch(&self, longest: usize) -> TextLength {
        let counted = match self.padding {
            Padding::Longest => longest.clamp(1, self.limit()),
            Padding::MaxLength => self.limit(),
        };
        let bucket = self.buckets.partition_point(|&b| b < counted);
        TextLength { counted, padded: self.buckets[bucket] }
    }
}

/// The smallest length of at least `length` that is a multiple of 8 with the image's place.
fn aligned(length: usize) -> usize {
    (length + 1).next_multiple_of(8) - 1
}

/// The length that at least `share` of the captions do not pass.
fn quantile(stats: &ContentStats, share: f64) -> usize {
    let wanted = (stats.captions() as f64 * share).ceil() as u64;
    let mut seen = 0;
    let reached = |&(_, &n): &(&usize, &u64)| {
        seen += n;
        seen >= wanted
    };
    stats.lengths.iter().find(reached).map_or(stats.longest(), |(&length, _)| length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stats(lengths: &[(usize, u64)]) -> ContentStats {
        let scanned = lengths.iter().map(|l| l.1 as usize).sum();
        ContentStats {
            rows: scanned,
            scanned,
            lengths: lengths.iter().copied().collect(),
            ..ContentStats::default()
        }
    }

    fn buckets(padding: Padding, max: Option<usize>, lengths: &[(usize, u64)]) -> Vec<usize> {
        Lengths::plan(padding, max, &stats(lengths)).unwrap().buckets
    }

    #[test]
    fn a_long_tail_has_a_bucket_of_its_own() {
        let lengths = [(40, 500), (55, 400), (70, 70), (85, 20), (100, 9), (400, 1)];
        assert_eq!(buckets(Padding::Longest, None, &lengths), [47, 55, 71, 87, 103, 400]);
        assert_eq!(buckets(Padding::Longest, Some(80), &lengths), [47, 55, 71, 80]);
        assert_eq!(buckets(Padding::Longest, Some(500), &lengths), [47, 55, 71, 87, 103, 400]);
        assert_eq!(buckets(Padding::MaxLength, Some(500), &lengths), [500]);
        assert_eq!(buckets(Padding::MaxLength, None, &lengths), [400]);
        assert_eq!(buckets(Padding::Longest, None, &[(3, 1)]), [3]);
    }

    #[test]
    fn a_sample_leaves_room() {
        let mut s = stats(&[(30, 10), (40, 10)]);
        s.rows = 1000;
        assert_eq!(Lengths::plan(Padding::Longest, None, &s).unwrap().limit(), 55);
        assert_eq!(Lengths::plan(Padding::Longest, Some(40), &s).unwrap().limit(), 40);
    }

    #[test]
    fn batches() {
        let l = Lengths { padding: Padding::Longest, buckets: vec![7, 15, 20] };
        let of = |longest| {
            let TextLength { counted, padded } = l.batch(longest);
            (counted, padded)
        };
        assert_eq!(
            [0, 1, 7, 8, 15, 16, 20, 99].map(of),
            [(1, 7), (1, 7), (7, 7), (8, 15), (15, 15), (16, 20), (20, 20), (20, 20)]
        );
        let l = Lengths { padding: Padding::MaxLength, buckets: vec![20] };
        assert_eq!(l.batch(3), TextLength { counted: 20, padded: 20 });
    }

    #[test]
    fn refusals() {
        let plan = |max, s: &ContentStats| Lengths::plan(Padding::Longest, max, s).unwrap_err();
        assert_eq!(plan(Some(0), &stats(&[(3, 1)])), LengthsError::Zero);
        assert_eq!(plan(None, &stats(&[])), LengthsError::NoCaptions { rows: 0 });
    }

    proptest! {
        #[test]
        fn few_ascending_and_sufficient(
            lengths in prop::collection::btree_map(1usize..2000, 1u64..1000, 1..40),
            max in prop::option::of(1usize..1500),
            longest in 0usize..2500,
        ) {
            let s = stats(&lengths.into_iter().collect::<Vec<_>>());
            for padding in [Padding::Longest, Padding::MaxLength] {
                let l = Lengths::plan(padding, max, &s).unwrap();
                prop_assert!(l.buckets().len() <= MAX_BUCKETS && l.buckets().is_sorted_by(|a, b| a < b));
                prop_assert!(max.is_none_or(|max| l.limit() <= max));
                let t = l.batch(longest);
                prop_assert!(1 <= t.counted && t.counted <= t.padded && t.padded <= l.limit());
                prop_assert!(t.counted >= longest.min(l.limit()));
            }
        }
    }
}
