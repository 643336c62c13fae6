//! What was odd about the rows of a run: bad ones, cut captions, replaced characters, flawed pictures.
//!
//! Invariants: a row of a split counts once, however often it is drawn; memory grows with the odd rows alone, never
//! with the rows drawn.

use crate::report::Counts;
use ocelli_data::batch::{Batch, Skipped};
use ocelli_data::source::BadSample;
use roaring::RoaringTreemap;
use serde_json::{Value, json};

/// Samples after which the share of bad ones is judged, if the split has more rows than that.
const JUDGE_AFTER: u64 = 1000;
/// Bad rows shown when a run ends because of them.
const SHOWN: usize = 3;

/// A part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What is trained on.
    Training,
    /// What is judged by.
    Validation,
}

/// The odd rows of one part.
#[derive(Debug, Default)]
struct Odd {
    skipped: RoaringTreemap,
    flawed: RoaringTreemap,
}

/// The count of a whole run.
#[derive(Debug, Default)]
pub struct Tally {
    training: Odd,
    validation: Odd,
    counts: Counts,
    /// The first bad rows of training.
    first: Vec<BadSample>,
    /// Rows drawn for training, repetitions included.
    drawn: u64,
    /// Some of them could be used.
    usable: bool,
}

/// How many rows could not be used, of those that were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Bad rows.
    pub skipped: u64,
    /// Rows drawn. After a resume within a pass over the split, rows that came before it count as drawn from the
    /// moment on at which as many were: the share is never too large.
    pub seen: u64,
}

impl Share {
    /// True if the share is above `limit`.
    pub fn above(self, limit: f64) -> bool {
        self.skipped as f64 > limit * self.seen as f64
    }
}

impl Tally {
    /// Counts a batch of a part. Returns the bad rows that are new, as lines for `skipped.jsonl`.
    pub fn add(&mut self, part: Part, batch: &Batch) -> Vec<Value> {
        let (odd, name) = match part {
            Part::Training => (&mut self.training, "training"),
            Part::Validation => (&mut self.validation, "validation"),
        };
        let new: Vec<&Skipped> = batch.skipped.iter().filter(|s| odd.skipped.insert(s.row as u64)).collect();
        for s in &new {
            *self.counts.skipped.entry(s.why.reason).or_default() += 1;
        }
        for f in batch.flaws.iter().filter(|f| odd.flawed.insert(f.row as u64)) {
            self.counts.truncated += u64::from(f.cut);
            self.counts.replaced += f.replaced as u64;
            f.warnings.words().for_each(|w| *self.counts.warnings.entry(w).or_default() += 1);
        }
        if part == Part::Training {
            let room = SHOWN - self.first.len();
            self.first.extend(new.iter().take(room).map(|s| s.why.clone()));
            self.drawn += (batch.real_rows + batch.skipped.len()) as u64;
            self.usable |= batch.real_rows > 0;
        }
        new.into_iter().map(|s| line(name, s)).collect()
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The first bad rows of training.
    pub fn first(&self) -> &[BadSample] {
        &self.first
    }

    /// True if a row could be trained on.
    pub fn usable(&self) -> bool {
        self.usable
    }

    /// The share of bad rows among those drawn from a training split of `rows`.
    pub fn share(&self, rows: usize) -> Share {
        Share { skipped: self.training.skipped.len(), seen: self.drawn.min(rows as u64) }
    }

    /// True if enough was drawn of a training split of `rows` to judge by the share: every row once, or very many.
    pub fn enough(&self, rows: usize) -> bool {
        self.drawn >= JUDGE_AFTER.min(rows as u64)
    }
}

fn line(split: &str, s: &Skipped) -> Value {
    let BadSample { reason, detail, place, file, bytes } = &s.why;
    json!({
        "split": split, "reason": reason, "source": file, "row": s.number, "bytes": bytes, "place": place,
        "detail": detail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocelli_data::batch::Flaw;
    use ocelli_data::image::Warnings;

    fn batch(bad: &[usize], cut: &[usize], usable: usize) -> Batch {
        let why = |row| BadSample {
            reason: "truncated",
            detail: "cut".into(),
            place: format!("row {row}"),
            file: "x.csv".into(),
            bytes: Some(9),
        };
        let flaw = |&row| Flaw {
            slot: 0,
            row,
            cut: true,
            replaced: 2,
            warnings: Warnings { animated: true, ..Warnings::default() },
        };
        Batch {
            real_rows: usable,
            skipped: bad
                .iter()
                .map(|&row| Skipped { slot: 0, row, number: 10 * row, why: why(row) })
                .collect(),
            flaws: cut.iter().map(flaw).collect(),
            ..Batch::default()
        }
    }

    #[test]
    fn a_row_counts_once_in_each_part() {
        let mut t = Tally::default();
        assert_eq!(t.add(Part::Training, &batch(&[3, 7, 3], &[1], 5)).len(), 2);
        assert_eq!(t.add(Part::Training, &batch(&[7], &[1, 2], 7)).len(), 0);
        let lines = t.add(Part::Validation, &batch(&[3], &[1], 1));
        assert_eq!(
            (lines.len(), &lines[0]["split"], &lines[0]["row"]),
            (1, &json!("validation"), &json!(30))
        );
        let c = t.counts();
        assert_eq!((c.skipped["truncated"], c.truncated, c.replaced, c.warnings["animated"]), (3, 3, 6, 3));
        assert_eq!(t.share(100), Share { skipped: 2, seen: 16 });
        assert_eq!(t.first().len(), 2);
    }

    #[test]
    fn judged_once_every_row_or_a_thousand_were_drawn() {
        let mut t = Tally::default();
        t.add(Part::Training, &batch(&[0, 1], &[], 7));
        assert!(!t.enough(10) && t.enough(9) && t.usable());
        t.add(Part::Training, &batch(&[0], &[], 8));
        assert_eq!(t.share(10), Share { skipped: 2, seen: 10 });
        assert!(t.share(10).above(0.19) && !t.share(10).above(0.2));
        t.add(Part::Training, &batch(&[], &[], 981));
        assert!(!t.enough(1_000_000) && t.share(1_000_000).seen == 999);
        t.add(Part::Training, &batch(&[], &[], 1));
        assert!(t.enough(1_000_000));
    }
}
