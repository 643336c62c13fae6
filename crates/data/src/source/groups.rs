//! Captions of all rows in one piece of memory, and which rows share a picture.
//!
//! A row is a pair of picture and caption. Where a picture has several captions, its rows stand one after the
//! other: a [`Group`](Groups) is a picture.

use std::collections::BTreeMap;
use std::ops::Range;

use super::caption::{BAD_ENCODING, clean_caption, no_text};
use super::fingerprint::Fingerprint;
use crate::text::count;

/// Which consecutive rows share a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The first row of each picture, then the number of rows; ascending.
    starts: Vec<usize>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { starts: vec![0] }
    }
}

impl Groups {
    /// Groups of these sizes, in order. A picture without a row is none.
    pub fn of_sizes(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut groups = Self::default();
        sizes.into_iter().for_each(|size| groups.push(size));
        groups
    }

    fn push(&mut self, size: usize) {
        if size > 0 {
            self.starts.push(self.rows() + size);
        }
    }

    /// How many pictures there are.
    pub fn pictures(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The rows of a picture; none for a picture that does not exist.
    pub fn rows_of(&self, picture: usize) -> Range<usize> {
        match self.starts.get(picture..picture.saturating_add(2)) {
            Some(&[start, end]) => start..end,
            _ => 0..0,
        }
    }

    /// The picture of a row.
    pub fn picture_of(&self, row: usize) -> usize {
        self.starts.partition_point(|start| *start <= row).saturating_sub(1)
    }
}

/// The cleaned captions of all rows.
#[derive(Debug, Default)]
pub(crate) struct Captions {
    text: String,
    /// Where each row's caption ends in `text`.
    ends: Vec<usize>,
    chars: Vec<u32>,
    groups: Groups,
    /// Rows whose caption could not be read: the reason and what was found.
    bad: BTreeMap<usize, (&'static str, String)>,
}

impl Captions {
    /// Adds a picture with its captions. Empty ones do not count beside others; a picture without any is a row
    /// with an empty caption.
    pub(crate) fn push<S: AsRef<str>>(&mut self, raw: impl IntoIterator<Item = S>) {
        let cleaned =
            raw.into_iter().map(|text| clean_caption(text.as_ref())).filter(|text| !text.is_empty());
        let before = self.rows();
        cleaned.for_each(|text| self.row(&text));
        if self.rows() == before {
            self.row("");
        }
        self.groups.push(self.rows() - before);
    }

    /// Adds a picture whose caption cannot be read.
    pub(crate) fn push_bad(&mut self, reason: &'static str, found: String) {
        self.bad.insert(self.rows(), (reason, found));
        self.push([""; 0]);
    }

    fn row(&mut self, text: &str) {
        let text = if let Some(found) = no_text(text) {
            self.bad.insert(self.rows(), (BAD_ENCODING, found));
            ""
        } else {
            text
        };
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.chars.push(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
    }

    pub(crate) fn rows(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn chars(&self, row: usize) -> usize {
        self.chars.get(row).map_or(0, |n| *n as usize)
    }

    /// The caption of a row, or the reason and what is wrong.
    pub(crate) fn get(&self, row: usize) -> Result<&str, (&'static str, String)> {
        if let Some((reason, found)) = self.bad.get(&row) {
            return Err((reason, found.clone()));
        }
        let Some(&end) = self.ends.get(row) else {
            return Err(("read_error", format!("the source has {}", count(self.rows(), "row"))));
        };
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        if start == end {
            Err(("empty_caption", "there is no caption".into()))
        } else {
            Ok(&self.text[start..end])
        }
    }

    pub(crate) fn picture_of(&self, row: usize) -> usize {
        self.groups.picture_of(row)
    }

    /// The groups, if a picture has several captions.
    pub(crate) fn groups(&self) -> Option<&Groups> {
        (self.groups.rows() > self.groups.pictures()).then_some(&self.groups)
    }

    /// True if no row has a caption.
    pub(crate) fn none_usable(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn print(&self, fingerprint: &mut Fingerprint) {
        fingerprint.field(self.text.as_bytes());
        self.ends.iter().chain(&self.groups.starts).for_each(|n| fingerprint.number(*n as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_pictures() {
        let groups = Groups::of_sizes([2, 1, 0, 3]);
        assert_eq!((groups.pictures(), groups.rows()), (3, 6));
        assert_eq!([0, 1, 2, 3].map(|p| groups.rows_of(p)), [0..2, 2..3, 3..6, 0..0]);
        assert_eq!([0, 1, 2, 3, 5].map(|r| groups.picture_of(r)), [0, 0, 1, 2, 2]);
        assert_eq!(Groups::default().pictures(), 0);
    }

    #[test]
    fn captions_are_cleaned_and_empty_ones_do_not_count_beside_others() {
        let mut all = Captions::default();
        all.push(["a\nb", " ", "c"]);
        all.push([""]);
        all.push_bad("bad_encoding", "x".into());
        all.push(["caf\u{e9}"]);
        all.push(["a\0b"]);
        assert_eq!((all.rows(), all.groups.pictures()), (6, 5));
        assert_eq!([0, 1, 4].map(|row| all.get(row).unwrap()), ["a b", "c", "caf\u{e9}"]);
        assert_eq!(
            [2, 3, 5, 9].map(|row| all.get(row).unwrap_err().0),
            ["empty_caption", "bad_encoding", "bad_encoding", "read_error"]
        );
        assert_eq!([0, 2, 4, 9].map(|row| all.chars(row)), [3, 0, 4, 0]);
        assert_eq!([0, 1, 2, 4].map(|row| all.picture_of(row)), [0, 0, 1, 3]);
        assert!(all.groups().is_some() && !all.none_usable());
    }
}
