//! Rows that show the same picture, told by their paths: a column of them is small, and read when the set is opened.
//!
//! Pictures are not compared, which would take reading all of them; but a few that have the same path are, for there are
//! sets in which many pictures are called alike.

use std::path::Path;

use super::columns::Holds;
use super::leaf::{self, Part};
use super::shard::Shard;
use super::{Parquet, Picture};
use crate::source::Repeats;
use crate::source::base64;
use crate::source::fingerprint::Fingerprint;
use crate::source::name::shortest;
use crate::source::repeats::{Finder, told_by_base64};

/// Bytes of a column for each row, at most, for it to be read at the start: paths, not pictures.
const PATH: u64 = 1024;
/// Pairs of pictures with one path that are compared.
const COMPARED: usize = 8;

/// What the rows say of repeats.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// By row of captions.
    pub(super) repeats: Option<Repeats>,
    /// Repeats that are not known.
    pub(super) unknown: Option<&'static str>,
}

/// What is not known of a set without paths, of one with, and of one where they do not help.
const NO_PATHS: &str = "equal pictures in different rows (there are no paths to tell them by)";
const OTHER_PATHS: &str = "pictures of equal bytes in rows with different paths";
const SHARED_PATHS: &str = "equal pictures in different rows (different pictures have the same path)";

/// Looks for them.
pub(super) fn told(set: &Parquet) -> Told {
    let mut rows = Rows::default();
    // What cannot be read is told when its row is.
    if set.shards.iter().any(|shard| rows.read(shard).is_none()) || !(rows.paths || rows.pictures) {
        return Told { repeats: None, unknown: Some(NO_PATHS) };
    }
    let unknown = rows.paths.then_some(OTHER_PATHS);
    let Some(repeats) = rows.finder.found() else { return Told { repeats: None, unknown } };
    if differ(set, &repeats) {
        return Told { repeats: None, unknown: Some(SHARED_PATHS) };
    }
    Told { repeats: repeats.of_captions(&set.captions), unknown }
}

/// What tells the pictures of the rows read so far.
#[derive(Default)]
struct Rows {
    finder: Finder,
    /// Some have a path.
    paths: bool,
    /// Some hold the picture itself.
    pictures: bool,
}

impl Rows {
    /// Reads the paths of a file; `None` if it has none, or they cannot be read.
    fn read(&mut self, shard: &Shard) -> Option<()> {
        let (leaf, text) = match shard.columns.image {
            Holds::Struct(_, path) => (path?, false),
            Holds::Text(leaf) => (leaf, true),
            Holds::Bytes(_) => return None,
        };
        let folder = shard.path.parent().unwrap_or(Path::new("."));
        for group in 0..shard.metadata.num_row_groups() {
            let rows = shard.rows(group);
            let bytes = shard.metadata.row_group(group).column(leaf).uncompressed_size();
            if u64::try_from(bytes).ok()? > PATH.saturating_mul(rows as u64 + 1) {
                return None;
            }
            let (part, mut at) = (Part { group, leaf, first: 0, rows }, 0);
            leaf::values(&shard.tap(group, leaf), &shard.metadata, part, |row, value| {
                (at..row).for_each(|_| self.finder.look(None));
                self.look(folder, value, text);
                at = row + 1;
                Ok(())
            })
            .ok()?;
            (at..rows).for_each(|_| self.finder.look(None));
        }
        Some(())
    }

    /// Looks at a path, or in a column of `text` at what may be the picture itself.
    fn look(&mut self, folder: &Path, value: &[u8], text: bool) {
        let named = !text || base64::names_a_file(value) || base64::address(value).is_some();
        if !named {
            self.pictures = true;
            return self.finder.look(told_by_base64(value));
        }
        let path = shortest(&String::from_utf8_lossy(value));
        let path = path.as_os_str().as_encoded_bytes();
        self.paths |= !path.is_empty();
        let mut fingerprint = Fingerprint::new("path");
        // The same name beside another file is another picture's.
        fingerprint.field(folder.as_os_str().as_encoded_bytes());
        fingerprint.field(path);
        self.finder.look((!path.is_empty()).then(|| fingerprint.value()));
    }
}

/// True if pictures that are told to be the same are not, as far as some of them are compared.
fn differ(set: &Parquet, repeats: &Repeats) -> bool {
    let several: Vec<[usize; 2]> = (0..repeats.pictures())
        .filter_map(|picture| {
            let mut rows = repeats.rows_of(picture);
            let first = rows.next()?;
            Some([first, rows.last()?])
        })
        .collect();
    let step = several.len().div_ceil(COMPARED).max(1);
    several.iter().step_by(step).any(|pair| match pair.map(|row| set.picture_at(row)) {
        [Ok(Picture::Bytes(a)), Ok(Picture::Bytes(b))] => a != b,
        [Ok(Picture::Bytes(_)), Ok(_)] | [Ok(_), Ok(Picture::Bytes(_))] => true,
        _ => false,
    })
}
