//! Rows that show the same picture although each is a row of its own, wherever they stand.
//!
//! A picture is told by 64 bits of what names or makes it: what is kept does not grow with the pictures.
//! Invariants: pictures are numbered from 0 without gaps, in the order in which they are first shown.

use std::collections::HashMap;

use super::fingerprint::Fingerprint;
use super::groups::Captions;
use super::{Groups, base64};
use crate::text::count;

/// Which rows show which picture, of a source where at least two rows show the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    of_row: Vec<u32>,
    /// The rows, those of a picture together.
    order: Vec<u32>,
    /// The places of a picture's rows in `order`.
    groups: Groups,
}

impl Repeats {
    /// From the number of each row's picture; `None` if no two rows show the same one. A number may be any below that
    /// of the rows, and pictures are numbered anew.
    pub fn new(of_row: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut finder = Finder::default();
        of_row.into_iter().for_each(|picture| finder.look(Some(u64::from(picture))));
        finder.found()
    }

    /// The same of the rows of captions, if pictures that have them were found to be the same: those of one picture alone
    /// are a group, and no repeats.
    pub(crate) fn of_captions(self, captions: &Captions) -> Option<Self> {
        Self::new((0..captions.rows()).filter_map(|row| self.of_row.get(captions.picture_of(row))).copied())
    }

    /// The number of each row's picture.
    pub fn of_row(&self) -> &[u32] {
        &self.of_row
    }

    /// Different pictures.
    pub fn pictures(&self) -> usize {
        self.groups.pictures()
    }

    /// The rows of a picture, in order; none for a picture that does not exist.
    pub fn rows_of(&self, picture: usize) -> impl Iterator<Item = usize> + '_ {
        self.order[self.groups.rows_of(picture)].iter().map(|row| *row as usize)
    }

    /// What a person should know of them.
    pub(crate) fn note(&self) -> String {
        format!(
            "{} show {}: each row is a sample, and those of one picture stay on one side of a split",
            count(self.of_row.len(), "row"),
            count(self.pictures(), "different picture")
        )
    }
}

/// Finds rows that show the same picture.
#[derive(Default)]
pub(crate) struct Finder {
    known: HashMap<u64, u32>,
    of_row: Vec<u32>,
    pictures: u32,
}

impl Finder {
    /// Looks at the next row: at 64 bits that tell its picture; without them it is like no other.
    pub(crate) fn look(&mut self, picture: Option<u64>) {
        let next = self.pictures;
        let picture = picture.map_or(next, |told| *self.known.entry(told).or_insert(next));
        self.pictures = next.saturating_add(u32::from(picture == next));
        self.of_row.push(picture);
    }

    /// What was found.
    pub(crate) fn found(self) -> Option<Repeats> {
        let Self { of_row, pictures, .. } = self;
        let rows = u32::try_from(of_row.len()).ok().filter(|rows| *rows > pictures)?;
        let mut sizes = vec![0; pictures as usize];
        of_row.iter().for_each(|picture| sizes[*picture as usize] += 1);
        let mut order: Vec<u32> = (0..rows).collect();
        order.sort_by_key(|row| of_row[*row as usize]);
        Some(Repeats { of_row, order, groups: Groups::of_sizes(sizes) })
    }
}

/// What tells a picture in base64: the bytes that its text stands for, in whatever way it is written; of what is no
/// base64, the text. One without bytes is like no other.
pub(crate) fn told_by_base64(text: &[u8]) -> Option<u64> {
    let (mut bytes, mut length) = (Fingerprint::new("picture"), 0);
    let decoded = base64::each_part(text, |part| {
        length += part.len();
        bytes.field(part);
    });
    if decoded.is_ok() {
        return (length > 0).then(|| bytes.value());
    }
    let mut as_it_is = Fingerprint::new("text");
    as_it_is.field(text.trim_ascii());
    Some(as_it_is.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_same_bytes_are_one_picture() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|i| (i * i % 251) as u8).collect();
        let engines =
            [::base64::engine::general_purpose::STANDARD, ::base64::engine::general_purpose::URL_SAFE_NO_PAD];
        let plain = ::base64::Engine::encode(&engines[0], &bytes);
        let wrapped: Vec<&str> =
            plain.as_bytes().chunks(76).map(|c| std::str::from_utf8(c).unwrap()).collect();
        let spellings = [
            plain.clone(),
            format!(" {plain}\n"),
            plain.trim_end_matches('=').into(),
            ::base64::Engine::encode(&engines[1], &bytes),
            wrapped.join("\r\n"),
            format!("data:image/png;base64,{plain}"),
            format!("{} {}", &plain[..5000], &plain[5000..]),
        ];
        let told: Vec<_> = spellings.iter().map(|text| told_by_base64(text.as_bytes())).collect();
        assert!(told[0].is_some() && told.iter().all(|one| *one == told[0]), "{told:?}");
        let others = [&plain[4..], &plain[..plain.len() - 4], "AAAA", "@@@", "cat.jpg"];
        let others = others.map(|text| told_by_base64(text.as_bytes()));
        assert!(others.iter().all(|one| one.is_some() && *one != told[0]), "{others:?}");
        assert_eq!(told_by_base64(b"@@@ "), told_by_base64(b" @@@"));
        assert_eq!(["", " ", "data:;base64,"].map(|text| told_by_base64(text.as_bytes())), [None; 3]);
    }

    #[test]
    fn rows_of_one_picture_are_found_wherever_they_stand() {
        let mut finder = Finder::default();
        for told in [Some(7), None, Some(9), Some(7), None, Some(9)] {
            finder.look(told);
        }
        let repeats = finder.found().unwrap();
        assert_eq!((repeats.of_row(), repeats.pictures()), (&[0, 1, 2, 0, 3, 2][..], 4));
        let rows = |picture| repeats.rows_of(picture).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3, 4].map(rows), [vec![0, 3], vec![1], vec![2, 5], vec![4], vec![]]);
        assert!(repeats.note().starts_with("6 rows show 4 different pictures: "));
        assert_eq!(Repeats::new([5, 5, 1]).unwrap().of_row(), [0, 0, 1]);
        assert_eq!((Repeats::new([2, 1, 0]), Repeats::new([])), (None, None));
    }
}
