//! Which rows of a source are for training and which for validation: shuffled once by the seed, then divided.
//!
//! The two never share a row, and neither is empty by accident: only a ratio of 1 (on purpose) or a source
//! of a single row (said in [`Split::note`]) leaves no validation rows. Nothing is stored per row, but where rows
//! share a picture.
use std::sync::Arc;

use thiserror::Error;

use crate::sampler::Permutation;
use crate::source::Groups;

/// A set of distinct rows of a data set, in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    places: Places,
    len: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Places {
    /// From this row on, in order.
    From(u64),
    /// From this place of a permutation on.
    Permuted(Permutation, u64),
    /// These rows.
    Listed(Arc<[usize]>),
}

impl Rows {
    /// The rows `0..len`, in the source's own order.
    pub fn all(len: usize) -> Self {
        Self { places: Places::From(0), len: len as u64 }
    }

    /// All rows of the pictures in `pictures`.
    fn of_pictures(pictures: &Self, groups: &Groups) -> Self {
        let rows: Arc<[usize]> = pictures.iter().flat_map(|picture| groups.rows_of(picture)).collect();
        Self { len: rows.len() as u64, places: Places::Listed(rows) }
    }

    /// The first `most` of them.
    #[must_use]
    pub fn first(self, most: usize) -> Self {
        Self { len: self.len.min(most as u64), ..self }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The source's row number of the `i`-th row; `None` from `len()` on.
    pub fn get(&self, i: usize) -> Option<usize> {
        if i as u64 >= self.len {
            return None;
        }
        Some(match &self.places {
            Places::From(start) => (start + i as u64) as usize,
            Places::Permuted(order, start) => order.at(start + i as u64) as usize,
            Places::Listed(rows) => *rows.get(i)?,
        })
    }

    /// All row numbers are below this.
    pub(crate) fn bound(&self) -> usize {
        match &self.places {
            Places::From(start) => (start + self.len) as usize,
            Places::Permuted(order, _) => order.len() as usize,
            Places::Listed(rows) => rows.iter().max().map_or(0, |last| last + 1),
        }
    }

    /// All row numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

/// A source's rows, divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Rows to train on; never empty.
    pub train: Rows,
    /// Rows to judge by; empty if the ratio is 1 or there is only one row.
    pub validation: Rows,
    /// Something a person should be told, if the ratio could not be kept.
    pub note: Option<String>,
}

/// Why there is no split.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SplitError {
    /// A ratio outside of (0, 1].
    #[error(
        "data_config.train_split_ratio is {ratio}; it is the share of rows to train on, above 0 and at most 1"
    )]
    Ratio {
        /// What was asked for.
        ratio: f64,
    },
    /// Nothing to divide.
    #[error("the data has no rows, so there is nothing to train on")]
    NoRows,
}

/// Divides the rows `0..len`: `ratio` of them, rounded to the nearest, to train on, and the others.
pub fn split(len: usize, ratio: f64, seed: u64) -> Result<Split, SplitError> {
    if !(ratio > 0.0 && ratio <= 1.0) {
        return Err(SplitError::Ratio { ratio });
    }
    if len == 0 {
        return Err(SplitError::NoRows);
    }
    let train = match len {
        1 => 1,
        _ if ratio == 1.0 => len,
        _ => ((len as f64 * ratio).round() as usize).clamp(1, len - 1),
    };
    let note = (len == 1 && ratio < 1.0)
        .then(|| "the data has only one row: it is used for training, and there is no validation".to_owned());
    let order = Permutation::new(len as u64, seed, "split", 0);
    let part = |start: usize, len: usize| Rows {
        places: Places::Permuted(order.clone(), start as u64),
        len: len as u64,
    };
    Ok(Split { train: part(0, train), validation: part(train, len - train), note })
}

/// Divides the rows of a set where several rows share a picture: no picture is on both sides. `ratio` is the share
/// of pictures to train on.
pub fn split_pictures(groups: &Groups, ratio: f64, seed: u64) -> Result<Split, SplitError> {
    let Split { train, validation, note } = split(groups.pictures(), ratio, seed)?;
    let rows = |pictures: &Rows| Rows::of_pictures(pictures, groups);
    Ok(Split { train: rows(&train), validation: rows(&validation), note: note.map(of_one_picture) })
}

/// What is said of a set that cannot be divided.
fn of_one_picture(note: String) -> String {
    note.replacen("only one row: it", "only one picture: it", 1)
}

/// The same where the rows of a picture may stand anywhere. `of_row` is the number of each row's picture; the pictures
/// are numbered from 0 without gaps.
pub fn split_repeated(of_row: &[u32], ratio: f64, seed: u64) -> Result<Split, SplitError> {
    let mut sizes = vec![0; of_row.iter().max().map_or(0, |last| *last as usize + 1)];
    of_row.iter().for_each(|picture| sizes[*picture as usize] += 1);
    let mut order: Vec<usize> = (0..of_row.len()).collect();
    order.sort_by_key(|row| of_row[*row]);
    let groups = Groups::of_sizes(sizes);
    let Split { train, validation, note } = split(groups.pictures(), ratio, seed)?;
    let rows = |pictures: &Rows| {
        let rows: Arc<[usize]> =
            pictures.iter().flat_map(|picture| groups.rows_of(picture)).map(|place| order[place]).collect();
        Rows { len: rows.len() as u64, places: Places::Listed(rows) }
    };
    Ok(Split { train: rows(&train), validation: rows(&validation), note: note.map(of_one_picture) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn disjoint_whole_and_never_empty(len in 2usize..500, ratio in 0.0001f64..1.0, seed: u64) {
            let s = split(len, ratio, seed).unwrap();
            prop_assert!(!s.train.is_empty() && !s.validation.is_empty());
            let mut all: Vec<usize> = s.train.iter().chain(s.validation.iter()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..len).collect::<Vec<_>>());
            prop_assert!((s.train.len() as f64 - len as f64 * ratio).abs() <= 1.0);
            prop_assert_eq!(split(len, ratio, seed).unwrap(), s);
        }
    }

    proptest! {
        #[test]
        fn no_picture_is_on_both_sides(
            sizes in prop::collection::vec(1usize..6, 2..60), ratio in 0.01f64..1.0, seed: u64,
        ) {
            let groups = Groups::of_sizes(sizes);
            let s = split_pictures(&groups, ratio, seed).unwrap();
            prop_assert!(!s.train.is_empty() && !s.validation.is_empty());
            let pictures = |rows: &Rows| rows.iter().map(|r| groups.picture_of(r)).collect::<BTreeSet<_>>();
            prop_assert!(pictures(&s.train).is_disjoint(&pictures(&s.validation)));
            let mut all: Vec<usize> = s.train.iter().chain(s.validation.iter()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..groups.rows()).collect::<Vec<_>>());
            prop_assert!(s.train.bound().max(s.validation.bound()) == groups.rows());
        }
    }

    proptest! {
        #[test]
        fn no_repeated_picture_is_on_both_sides(
            rows in prop::collection::vec(0u32..9, 2..60), ratio in 0.01f64..1.0, seed: u64,
        ) {
            let mut known = Vec::new();
            let of_row: Vec<u32> = rows.iter().map(|picture| {
                if !known.contains(picture) { known.push(*picture) }
                known.iter().position(|k| k == picture).unwrap() as u32
            }).collect();
            let s = split_repeated(&of_row, ratio, seed).unwrap();
            let pictures = |rows: &Rows| rows.iter().map(|row| of_row[row]).collect::<BTreeSet<_>>();
            prop_assert!(pictures(&s.train).is_disjoint(&pictures(&s.validation)));
            prop_assert!(!s.train.is_empty() && (known.len() == 1 || !s.validation.is_empty()));
            let mut all: Vec<usize> = s.train.iter().chain(s.validation.iter()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..of_row.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn edges() {
        let one = split(1, 0.9, 0).unwrap();
        assert_eq!((one.train.len(), one.validation.len()), (1, 0));
        assert!(one.note.is_some());
        let all = split(5, 1.0, 0).unwrap();
        assert_eq!((all.train.len(), all.validation.len(), all.note), (5, 0, None));
        let three = split(3, 0.9, 0).unwrap();
        assert_eq!((three.train.len(), three.validation.len()), (2, 1));
        let huge = split(u32::MAX as usize, 0.9, 1).unwrap();
        assert!(huge.train.get(huge.train.len() - 1).is_some() && huge.train.get(huge.train.len()).is_none());
        for ratio in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(split(5, ratio, 0), Err(SplitError::Ratio { .. })));
        }
        assert_eq!(split(0, 0.9, 0), Err(SplitError::NoRows));
    }

    #[test]
    fn the_first_rows_of_each_kind() {
        let groups = Groups::of_sizes([2, 1, 3]);
        let parts =
            [Rows::all(6), split(12, 0.5, 1).unwrap().train, Rows::of_pictures(&Rows::all(3), &groups)];
        for rows in parts {
            let all: Vec<usize> = rows.iter().collect();
            let few = rows.clone().first(4);
            assert_eq!((few.len(), few.iter().collect::<Vec<_>>(), few.get(4)), (4, all[..4].to_vec(), None));
            assert_eq!(rows.clone().first(9), rows);
        }
    }

    #[test]
    fn the_seed_changes_the_split() {
        let rows = |seed| split(100, 0.5, seed).unwrap().train.iter().collect::<Vec<_>>();
        assert_ne!(rows(1), rows(2));
        let sorted = rows(1).windows(2).filter(|w| w[0] < w[1]).count();
        assert!((15..35).contains(&sorted), "{sorted} of 49 neighbours ascend");
    }
}
