//! Every row of a source read as training would read it, and counted.

use super::{Opened, Request, Rows};
use crate::error::TrainError;
use crate::report::{Event, Reporter};
use ocelli_config::Dataset;
use ocelli_data::batch::Seen;
use ocelli_data::scan::UnknownCharacter;
use ocelli_data::source::{BadSample, without_captions};
use ocelli_data::text::count;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows looked at of a set that is drawn without end.
const DRAWN: usize = 1_000;

/// Rows looked at between two reports.
const AT_ONCE: usize = 512;

/// Bad rows of a split that are kept one by one; of more, only the counts.
pub const LISTED: usize = 10_000;

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The number by which people know it, from 0.
    pub row: usize,
    /// Why.
    pub why: BadSample,
}

/// What was found in one split of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// What it is: `csv images/inputs.csv (3 rows)`.
    pub name: String,
    /// Rows looked at.
    pub rows: usize,
    /// Rows that cannot be used, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// The first of them, in order, at most [`LISTED`].
    pub bad: Vec<Bad>,
    /// Rows that can be used although something about their picture is odd, by the word for it.
    pub warnings: BTreeMap<&'static str, u64>,
    /// Rows whose caption would be cut to the length limit.
    pub truncated: u64,
    /// Characters that would be replaced or dropped, for the vocabulary lacks them.
    pub replaced: u64,
    /// Least and greatest width, least and greatest height of the pictures, in pixels; none without a picture.
    pub sizes: Option<[u32; 4]>,
}

/// What the captions of a source are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Captions {
    /// Characters on average.
    pub mean: f64,
    /// Characters of the longest.
    pub longest: usize,
    /// Different characters.
    pub characters: usize,
    /// Longer captions are cut, in characters.
    pub limit: usize,
}

/// What was found in a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Its splits: the one to train on, and the one to validate on if there is one.
    pub parts: Vec<Part>,
    /// What a person should know of how it is read.
    pub notes: Vec<String>,
    /// What its captions are like; none for pictures without captions.
    pub captions: Option<Captions>,
    /// Characters that the vocabulary file lacks, most frequent first.
    pub unknown: Vec<UnknownCharacter>,
    /// Why it cannot be trained on as it is; empty if it can.
    pub refusals: Vec<String>,
}

/// Reads every row of a source; of drawn pictures, the first thousand.
///
/// # Errors
/// If the source cannot be used as a whole.
pub fn check(request: &Request, reporter: &mut dyn Reporter) -> Result<Checked, TrainError> {
    let Opened { config, parts, notes, captions } = request.open(None, reporter)?;
    let most = if config.data.dataset == Dataset::Shapes && captions.is_some() { DRAWN } else { usize::MAX };
    let parts: Vec<Part> = parts.iter().map(|rows| look(rows, most, reporter)).collect();
    let mut refusals = match &captions {
        Some(captions) => Vec::from_iter(captions.refusal.clone()),
        None => vec![without_captions(parts.iter().map(|part| part.rows).sum())],
    };
    refusals.extend(parts.first().and_then(|train| train.refusal(config.data.max_skip_ratio)));
    let useless = parts.iter().skip(1).filter(|part| part.usable() == 0);
    refusals.extend(
        useless.map(|part| format!("{}: none of {} can be used", part.name, count(part.rows, "row"))),
    );
    let about = captions.as_ref().map(|c| Captions {
        mean: c.stats.mean_length(),
        longest: c.stats.longest(),
        characters: c.stats.characters.len(),
        limit: c.limit,
    });
    let unknown = captions.map(|c| c.unknown).unwrap_or_default();
    Ok(Checked { parts, notes, captions: about, unknown, refusals })
}

/// Looks at the rows of a split.
fn look(rows: &Rows, most: usize, reporter: &mut dyn Reporter) -> Part {
    let total = rows.source().len().min(most);
    let mut found = Part { name: rows.source().describe(), ..Part::default() };
    while found.rows < total {
        let done = found.rows;
        found = found.join(part(rows, done..total.min(done + AT_ONCE)));
        reporter.event(&Event::Looked { done: found.rows, total });
    }
    found
}

/// Some of the rows, on all threads; joined in the order of the rows.
fn part(rows: &Rows, range: Range<usize>) -> Part {
    let one = |pixels: &mut Vec<u8>, row| Part::of(rows.source().number(row), rows.see(row, pixels));
    let memory = || vec![0; rows.picture_bytes()];
    range.into_par_iter().map_init(memory, one).reduce(Part::default, Part::join)
}

impl Part {
    /// Rows that can be used.
    pub fn usable(&self) -> usize {
        self.rows.saturating_sub(self.unusable())
    }

    /// Rows that cannot.
    pub fn unusable(&self) -> usize {
        self.skipped.values().map(|&n| n as usize).sum()
    }

    /// One row.
    fn of(row: usize, seen: Result<Seen, BadSample>) -> Self {
        let one = Self { rows: 1, ..Self::default() };
        match seen {
            Err(why) => Self { skipped: [(why.reason, 1)].into(), bad: vec![Bad { row, why }], ..one },
            Ok(Seen { sample, cut, replaced, .. }) => {
                let (w, h) = sample.original;
                Self {
                    warnings: sample.warnings.words().map(|word| (word, 1)).collect(),
                    truncated: u64::from(cut),
                    replaced: replaced as u64,
                    sizes: Some([w, w, h, h]),
                    ..one
                }
            }
        }
    }

    /// The rows of `self`, then those of `other`.
    fn join(mut self, other: Self) -> Self {
        self.rows += other.rows;
        let room = LISTED.saturating_sub(self.bad.len());
        self.bad.extend(other.bad.into_iter().take(room));
        add(&mut self.skipped, other.skipped);
        add(&mut self.warnings, other.warnings);
        self.truncated += other.truncated;
        self.replaced += other.replaced;
        self.sizes = match (self.sizes, other.sizes) {
            (Some(a), Some(b)) => Some([a[0].min(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].max(b[3])]),
            (a, b) => a.or(b),
        };
        self
    }

    /// Why training would stop because of these rows.
    fn refusal(&self, limit: f64) -> Option<String> {
        let (bad, rows) = (self.unusable(), count(self.rows, "row"));
        match bad as f64 > limit * self.rows as f64 {
            _ if self.usable() == 0 => Some(format!("none of {rows} can be used")),
            true => {
                Some(format!("{bad} of {rows} cannot be used, more than data_config.max_skip_ratio={limit}"))
            }
            false => None,
        }
    }
}

fn add(counts: &mut BTreeMap<&'static str, u64>, more: BTreeMap<&'static str, u64>) {
    more.into_iter().for_each(|(word, n)| *counts.entry(word).or_default() += n);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(row: usize) -> Part {
        let why = BadSample {
            reason: "corrupt",
            detail: String::new(),
            place: String::new(),
            file: String::new(),
            bytes: None,
        };
        Part::of(row, Err(why))
    }

    #[test]
    fn counts_go_on_where_the_list_ends() {
        let all = (0..LISTED + 5).map(bad).fold(Part::default(), Part::join);
        assert_eq!((all.rows, all.usable(), all.bad.len()), (LISTED + 5, 0, LISTED));
        assert!(all.bad.iter().enumerate().all(|(i, bad)| bad.row == i));
        assert!(all.refusal(1.0).unwrap().contains("none of"));
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        let part = Part { rows: 20, ..bad(3) };
        assert_eq!(part.refusal(0.05), None);
        assert!(part.refusal(0.04).unwrap().contains("1 of 20 rows"));
    }
}
