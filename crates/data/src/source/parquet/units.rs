//! Where pictures lie. A unit is what is looked through at one go: a page, if the file knows where its pages
//! begin, else a row group.
//!
//! When a row of a unit is first read, all of the unit is read once. A picture that lies in the file as it is
//! (not compressed) is from then on read from there; one that had to be unpacked is kept in a temporary file.
//! So a compressed page of two hundred pictures is unpacked once, not two hundred times, and a picture that
//! thousands of rows share through a dictionary is looked at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::file::metadata::ParquetMetaData;

use super::blocks::Lies;
use super::columns::Holds;
use super::leaf::{self, Part};
use super::shard::Shard;
use super::spool::Spool;
use crate::memory::Lack;

/// Where a picture lies.
#[derive(Clone, Debug)]
enum Place {
    /// There is none.
    None,
    /// In the file.
    File(u64, usize),
    /// In the temporary file.
    Spool(u64, usize),
    /// Compressed, and there is no room to keep it: it is unpacked whenever it is read.
    Packed,
    /// In a file of its own.
    Named(Box<str>),
    /// In a page that cannot be read, for this reason.
    Damaged(Box<str>),
}

/// What a row holds.
#[derive(Debug)]
pub(super) enum Value {
    None,
    Bytes(Vec<u8>),
    /// The name of a file.
    Named(Box<str>),
}

/// A part of a file that is looked through at one go.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) shard: usize,
    pub(super) group: usize,
    /// First row, counted in the row group.
    first: usize,
    rows: usize,
    /// First row, counted in the file.
    pub(super) first_in_shard: usize,
    places: Mutex<Option<Result<Arc<[Place]>, String>>>,
}

/// All units of a set.
#[derive(Debug)]
pub(super) struct Units {
    units: Vec<Unit>,
    /// First row of each unit in the whole set, then the number of rows.
    starts: Vec<usize>,
}

impl Units {
    pub(super) fn new(shards: &[Shard]) -> Self {
        let mut all = Self { units: Vec::new(), starts: vec![0] };
        for (i, shard) in shards.iter().enumerate() {
            let mut first_in_shard = 0;
            for group in 0..shard.metadata.num_row_groups() {
                let rows = shard.rows(group);
                for (first, rows) in pages(&shard.metadata, group, shard.columns.image.leaf(), rows) {
                    all.starts.push(all.rows() + rows);
                    all.units.push(Unit {
                        shard: i,
                        group,
                        first,
                        rows,
                        first_in_shard: first_in_shard + first,
                        places: Mutex::default(),
                    });
                }
                first_in_shard += rows;
            }
        }
        all
    }

    /// Rows of the whole set.
    pub(super) fn rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// First row of each unit, and whether a row group begins there.
    pub(super) fn runs(&self) -> impl Iterator<Item = (usize, bool)> + '_ {
        self.starts.iter().zip(&self.units).map(|(start, unit)| (*start, unit.first == 0))
    }

    /// The unit of a row, and the row's place in it.
    pub(super) fn find(&self, row: usize) -> Option<(&Unit, usize)> {
        let at = self.starts.partition_point(|start| *start <= row).checked_sub(1)?;
        Some((self.units.get(at)?, row - self.starts[at]))
    }
}

/// Pages of a column with a dictionary are looked through together up to so many bytes: the dictionary is unpacked
/// for each unit.
const WITH_DICTIONARY: u64 = 256 << 10;

/// First row and rows of each page of a row group, as its index says; one part if there is no index that fits.
/// Small pages that share a dictionary are one part.
fn pages(metadata: &ParquetMetaData, group: usize, leaf: usize, rows: usize) -> Vec<(usize, usize)> {
    let index = metadata.page_index_for_row_group(group);
    let column = metadata.row_group(group).column(leaf);
    let least = if column.dictionary_page_offset().is_some() { WITH_DICTIONARY } else { 0 };
    let firsts = index.page_locations(leaf).map(|pages| {
        let mut taken = least;
        let begins = pages.iter().filter(|page| {
            let begins = taken >= least;
            taken = if begins { 0 } else { taken } + u64::try_from(page.compressed_page_size).unwrap_or(0);
            begins
        });
        begins.map(|page| usize::try_from(page.first_row_index).ok()).collect::<Option<Vec<_>>>()
    });
    let whole = vec![(0, rows)];
    let Some(Some(firsts)) = firsts else { return whole };
    let fits = firsts.first() == Some(&0) && firsts.is_sorted_by(|a, b| a < b) && firsts.last() < Some(&rows);
    if !fits {
        return whole;
    }
    let ends = firsts.iter().skip(1).copied().chain([rows]);
    firsts.iter().zip(ends).map(|(&first, end)| (first, end - first)).collect()
}

impl Unit {
    /// What the row at `within` holds. The error says why this unit cannot be read.
    pub(super) fn value(&self, shard: &Shard, within: usize, spool: &Spool) -> Result<Value, String> {
        let places = self.places(shard, spool)?;
        let read = |bytes: io::Result<Vec<u8>>| bytes.map(Value::Bytes).map_err(|e| e.to_string());
        match places.get(within) {
            None | Some(Place::None) => Ok(Value::None),
            Some(Place::File(offset, len)) => read(shard.blocks.read(*offset, *len)),
            Some(Place::Spool(offset, len)) => read(spool.read(*offset, *len)),
            Some(Place::Named(path)) => Ok(Value::Named(path.clone())),
            Some(Place::Damaged(found)) => Err(found.to_string()),
            Some(Place::Packed) => self.unpack(shard, within),
        }
    }

    /// The places, found when they are first asked for. Others who ask meanwhile wait.
    fn places(&self, shard: &Shard, spool: &Spool) -> Result<Arc<[Place]>, String> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        // Memory that was not there once may be there now.
        places.take_if(|places| places.as_ref().is_err_and(|found| Lack::is_told(found)));
        let look = || {
            let look = crate::batch::caught(|| self.look(shard, spool));
            look.unwrap_or_else(|panic| Err(format!("the parquet reader gave up: {panic}")))
        };
        places.get_or_insert_with(look).clone()
    }

    fn look(&self, shard: &Shard, spool: &Spool) -> Result<Arc<[Place]>, String> {
        let mut places = vec![Place::None; self.rows];
        let image = self.part(shard.columns.image.leaf());
        if let Err(found) = Self::fill(&mut places, shard, image, spool) {
            // One damaged page spoils no other.
            let pages = leaf::pages(&shard.tap(image.group, image.leaf), &shard.metadata, image);
            let pages = pages.ok().filter(|pages| pages.len() > 1).ok_or(found)?;
            for page in pages {
                let from = page.first - self.first;
                let places = &mut places[from..from + page.rows];
                if let Err(found) = Self::fill(places, shard, page, spool) {
                    if Lack::is_told(&found) {
                        return Err(found);
                    }
                    places.fill(Place::Damaged(found.into()));
                }
            }
        }
        if let Holds::Struct(_, Some(path)) = shard.columns.image
            && places.iter().any(|place| matches!(place, Place::None))
        {
            leaf::values(&shard.tap(self.group, path), &shard.metadata, self.part(path), |row, value| {
                if let (Place::None, Ok(path)) = (&places[row], std::str::from_utf8(value)) {
                    places[row] = Place::Named(path.into());
                }
                Ok(())
            })?;
        }
        Ok(places.into())
    }

    /// Finds the places of a part's pictures.
    fn fill(places: &mut [Place], shard: &Shard, part: Part, spool: &Spool) -> Result<(), String> {
        let (tap, mut shared) = (shard.tap(part.group, part.leaf), HashMap::<_, Place>::new());
        let keep = |value: &[u8]| -> Result<Place, String> {
            let kept = spool.keep(value)?;
            Ok(kept.map_or(Place::Packed, |offset| Place::Spool(offset, value.len())))
        };
        leaf::values(&tap, &shard.metadata, part, |row, value| {
            places[row] = match tap.place(value) {
                Lies::File(offset) => Place::File(offset, value.len()),
                Lies::Nowhere => keep(value)?,
                Lies::Dictionary(at) => match shared.entry((at, value.len())) {
                    Entry::Occupied(place) => place.get().clone(),
                    Entry::Vacant(place) => place.insert(keep(value)?).clone(),
                },
            };
            Ok(())
        })
    }

    /// Unpacks one value.
    fn unpack(&self, shard: &Shard, within: usize) -> Result<Value, String> {
        let mut found = Value::None;
        let part = Part { first: self.first + within, rows: 1, ..self.part(shard.columns.image.leaf()) };
        leaf::values(&shard.tap(part.group, part.leaf), &shard.metadata, part, |_, value| {
            found = Value::Bytes(value.to_vec());
            Ok(())
        })?;
        Ok(found)
    }

    fn part(&self, leaf: usize) -> Part {
        Part { group: self.group, leaf, first: self.first, rows: self.rows }
    }
}
