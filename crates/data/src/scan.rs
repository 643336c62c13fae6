//! A look at all captions before training: how long they are, which characters they use, which rows cannot
//! be used. No picture is decoded. One pass serves the vocabulary, the padded lengths and the report.
use std::collections::BTreeMap;

use crate::source::Source;
use crate::tokenizer::Tokenizer;

/// Sets with more rows than this are looked at through that many evenly spaced rows.
pub const SCAN_LIMIT: usize = 1 << 16;

/// Sets with more rows than this are too many to look at each one.
const WHOLE_UP_TO: usize = 1 << 22;

/// Where and how often a character is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharacterUse {
    /// How often, repetitions in one caption included.
    pub count: u64,
    /// The first row that has it, by the number by which people know it.
    pub first_row: usize,
    /// Which of the sources that were looked at the row is of, from 0.
    pub source: usize,
}

/// A character that the vocabulary lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCharacter {
    /// Which one.
    pub character: char,
    /// Where and how often.
    pub used: CharacterUse,
}

/// What the captions of a source are like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentStats {
    /// Rows of the source.
    pub rows: usize,
    /// Rows looked at: all, or a sample of a very large set.
    pub scanned: usize,
    /// Rows without a usable caption, by reason.
    pub unusable: BTreeMap<&'static str, usize>,
    /// How many captions have how many characters.
    pub lengths: BTreeMap<usize, u64>,
    /// Every character used.
    pub characters: BTreeMap<char, CharacterUse>,
}

impl ContentStats {
    /// Reads the captions of `source`.
    pub fn scan(source: &dyn Source) -> Self {
        let rows = source.len();
        let scanned = if rows > WHOLE_UP_TO { SCAN_LIMIT } else { rows };
        let mut stats = Self { rows, scanned, ..Self::default() };
        // 128 bits: rows * scanned may pass 64.
        let row = |i: usize| (i as u128 * rows as u128 / scanned as u128) as usize;
        (0..scanned).map(row).for_each(|row| stats.look(source, row));
        stats
    }

    /// Adds what the captions of one more source are like.
    pub fn merge(&mut self, other: &Self) {
        for (&reason, n) in &other.unusable {
            *self.unusable.entry(reason).or_default() += n;
        }
        for (&length, n) in &other.lengths {
            *self.lengths.entry(length).or_default() += n;
        }
        for (&character, used) in &other.characters {
            let new = CharacterUse { count: 0, source: used.source + 1, ..*used };
            self.characters.entry(character).or_insert(new).count += used.count;
        }
        self.rows += other.rows;
        self.scanned += other.scanned;
    }

    fn look(&mut self, source: &dyn Source, row: usize) {
        let caption = match source.caption(row) {
            Ok(caption) => caption,
            Err(bad) => {
                *self.unusable.entry(bad.reason).or_default() += 1;
                return;
            }
        };
        let (mut length, first_row) = (0, source.number(row));
        for character in caption.chars() {
            length += 1;
            let new = CharacterUse { count: 0, first_row, source: 0 };
            let used = self.characters.entry(character).or_insert(new);
            used.count += 1;
        }
        *self.lengths.entry(length).or_default() += 1;
    }

    /// True if only a sample of the rows was looked at, so that longer captions may exist.
    pub fn is_sample(&self) -> bool {
        self.scanned < self.rows
    }

    /// Rows with a usable caption among those looked at.
    pub fn captions(&self) -> u64 {
        self.lengths.values().sum()
    }

    /// Characters of the longest caption; 0 if there is none.
    pub fn longest(&self) -> usize {
        self.lengths.keys().next_back().copied().unwrap_or(0)
    }

    /// Average number of characters; 0 if there is no caption.
    pub fn mean_length(&self) -> f64 {
        let total: f64 = self.lengths.iter().map(|(&chars, &n)| chars as f64 * n as f64).sum();
        total / self.captions().max(1) as f64
    }

    /// How many captions have more characters than `limit` and so will be cut.
    pub fn longer_than(&self, limit: usize) -> u64 {
        self.lengths.range(limit.saturating_add(1)..).map(|(_, n)| n).sum()
    }

    /// The characters that `tokenizer` does not know, the most frequent first.
    pub fn unknown(&self, tokenizer: &dyn Tokenizer) -> Vec<UnknownCharacter> {
        let mut unknown: Vec<_> = self
            .characters
            .iter()
            .filter(|&(&character, _)| !tokenizer.knows(character))
            .map(|(&character, &used)| UnknownCharacter { character, used })
            .collect();
        unknown.sort_by_key(|u| (std::cmp::Reverse(u.used.count), u.character));
        unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{BadSample, Sample};
    use crate::tokenizer::{CharTokenizer, UnknownPolicy};

    struct Captions(Vec<&'static str>, usize);

    impl Source for Captions {
        fn len(&self) -> usize {
            self.1
        }
        fn caption_chars(&self, row: usize) -> usize {
            self.0[row % self.0.len()].chars().count()
        }
        fn caption(&self, row: usize) -> Result<String, BadSample> {
            match self.0[row % self.0.len()] {
                "" => Err(BadSample {
                    reason: "empty_caption",
                    detail: String::new(),
                    place: String::new(),
                    file: String::new(),
                    bytes: None,
                }),
                text => Ok(text.to_owned()),
            }
        }
        fn read(&self, _: usize, _: usize, _: &mut [u8]) -> Result<Sample, BadSample> {
            unreachable!("a scan decodes no picture")
        }
        fn describe(&self) -> String {
            "captions".to_owned()
        }
        fn fingerprint(&self) -> u64 {
            0
        }
    }

    #[test]
    fn counts() {
        let s = ContentStats::scan(&Captions(vec!["abc", "", "a cé", "éé😀"], 4));
        assert_eq!((s.rows, s.scanned, s.captions(), s.longest()), (4, 4, 3, 4));
        assert_eq!(s.unusable, BTreeMap::from([("empty_caption", 1)]));
        assert!((s.mean_length() - 10.0 / 3.0).abs() < 1e-12 && !s.is_sample());
        assert_eq!([2, 3, 4].map(|n| s.longer_than(n)), [3, 1, 0]);
        let t = CharTokenizer::learn("abc ".chars(), true, UnknownPolicy::Error).unwrap();
        let used = |count, first_row| CharacterUse { count, first_row, source: 0 };
        assert_eq!(
            s.unknown(&t),
            [
                UnknownCharacter { character: 'é', used: used(3, 2) },
                UnknownCharacter { character: '😀', used: used(1, 3) },
            ]
        );
    }

    #[test]
    fn a_huge_set_is_sampled_and_an_empty_one_is_empty() {
        let s = ContentStats::scan(&Captions(vec!["abc", "d"], u32::MAX as usize));
        assert!(s.is_sample() && s.scanned == SCAN_LIMIT && s.characters.len() == 4);
        let s = ContentStats::scan(&Captions(vec![], 0));
        assert_eq!((s.captions(), s.longest(), s.mean_length()), (0, 0, 0.0));
    }
}
