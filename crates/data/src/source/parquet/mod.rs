//! Parquet files with a column of pictures and a column of captions, as Hugging Face image sets have them:
//! one file, a folder of shards with splits by name, or a pattern.
//!
//! Captions are read when the set is opened. Pictures are not kept: where each of them lies is found out when
//! a row of its page or row group is first read ([`units`](self)), so that rows can then be read in any order
//! at the cost of one read of the disk.

pub(crate) mod blocks;
mod captions;
mod columns;
pub(crate) mod files;
mod filled;
mod guard;
mod header;
mod leaf;
mod page;
mod paths;
pub(crate) mod select;
mod shard;
mod spool;
#[cfg(test)]
mod tests;
mod units;

use std::path::{Path, PathBuf};

use super::fingerprint::Fingerprint;
use super::groups::{Captions, Groups};
use super::name::{Name, Root, is_address, leads_out, not_fetched};
use super::picture::{Picture, reject};
use super::splits::SplitNames;
use super::{BadSample, Blocks, Repeats, Sample, Source, SourceError, WEB_ADDRESS, base64};
use crate::image::{DecodeOptions, NO_MEMORY, Reject};
use crate::memory::Lack;
use crate::stages::{Stage, timed};
use crate::text::count;
use columns::Holds;
use paths::Told;
use shard::Shard;
use spool::Spool;
use units::{Units, Value};

/// Rows that are worth reading one after another: a row group, or pages of so many of its rows.
const BLOCK: usize = 256;

/// How parquet files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParquetOptions {
    /// Name of the column with the pictures; `None`, or the published presets' name: the only one that can hold
    /// pictures, or `image` and the like.
    pub image_col: Option<String>,
    /// Name of the column with the captions; `None`: `caption`, `text` and the like.
    pub caption_col: Option<String>,
    /// How pictures are decoded.
    pub decode: DecodeOptions,
}

/// The splits that were asked for.
#[derive(Debug)]
pub struct ParquetSplits {
    /// To train on.
    pub train: Parquet,
    /// To validate on, if there is a split for that.
    pub validation: Option<Parquet>,
    /// Which splits were taken.
    pub notes: Vec<String>,
    /// What was left out or is missing, a line each.
    pub warnings: Vec<String>,
}

/// One split: the rows of its files, in the order of their names.
#[derive(Debug)]
pub struct Parquet {
    shards: Vec<Shard>,
    units: Units,
    lies: Blocks,
    captions: Captions,
    spool: Spool,
    told: Told,
    decode: DecodeOptions,
    notes: Vec<String>,
    describe: String,
    fingerprint: u64,
}

impl Parquet {
    /// Opens `path`: a file, a folder of files, or a pattern with `*`.
    ///
    /// # Errors
    /// If there are no files, a shard is missing, a file is cut or no parquet file, or a column is missing or
    /// holds neither pictures nor captions. A bad picture is a [`BadSample`].
    pub fn open(
        path: &Path,
        names: &SplitNames,
        options: &ParquetOptions,
    ) -> Result<ParquetSplits, SourceError> {
        let found = files::find(path, names, &files::PARQUET)?;
        let validation = found.validation.as_ref().map(|v| Self::open_split(v, options)).transpose()?;
        let train = Self::open_split(&found.train, options)?;
        Ok(ParquetSplits { train, validation, notes: found.notes, warnings: found.warnings })
    }

    /// Opens files that are known to make up one split of the set that people call `shown`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_files(
        paths: Vec<PathBuf>,
        shown: PathBuf,
        options: &ParquetOptions,
    ) -> Result<Self, SourceError> {
        Self::open_split(&files::Split::of(paths, shown), options)
    }

    fn open_split(files: &files::Split, options: &ParquetOptions) -> Result<Self, SourceError> {
        // The reader is other people's code fed with hostile bytes.
        crate::batch::caught(|| Self::read_split(files, options)).unwrap_or_else(|panic| {
            Err(SourceError::not_usable(&files.shown, format!("cannot be read as parquet: {panic}")))
        })
    }

    fn read_split(files: &files::Split, options: &ParquetOptions) -> Result<Self, SourceError> {
        let mut shards: Vec<Shard> = Vec::with_capacity(files.paths.len());
        for path in &files.paths {
            // All shards have the columns of the first.
            let shard = Shard::open(path, files.paths.len(), options, shards.first().map(|s| &s.columns))?;
            shards.push(shard);
        }
        let mut captions = Captions::default();
        let mut fingerprint = Fingerprint::new("parquet");
        for shard in &shards {
            captions::read(shard, &mut captions)?;
            shard.print(&mut fingerprint)?;
        }
        captions.print(&mut fingerprint);
        let place = files.shown.display();
        if captions.rows() == 0 {
            return Err(SourceError::not_usable(&files.shown, "has no row"));
        }
        let columns = &shards[0].columns;
        if captions.none_usable() {
            let found =
                format!("`{}` has no caption in {}", columns.caption_name, count(captions.rows(), "row"));
            return Err(SourceError::not_usable(&files.shown, found));
        }
        let units = Units::new(&shards);
        let spool = Spool::new(shards.iter().map(|shard| shard.blocks.len()).sum());
        let mut notes = vec![format!(
            "columns: `{}` holds {}, `{}` captions",
            columns.image_name,
            columns.image.holds(),
            columns.caption_name
        )];
        notes.extend(spool.note(shards.iter().map(Shard::packed_bytes).sum()));
        let (rows, pictures) = (captions.rows(), units.rows());
        let held = if rows > pictures {
            format!("{}, {rows} captions", count(pictures, "picture"))
        } else {
            count(pictures, "row")
        };
        let files = if shards.len() == 1 { String::new() } else { format!("{} files, ", shards.len()) };
        let describe = format!("parquet {place} ({files}{held})");
        let (decode, fingerprint) = (options.decode.clone(), fingerprint.value());
        let told = Told::default();
        let row = |picture| captions.groups().map_or(picture, |groups| groups.rows_of(picture).start);
        let runs = units.runs().map(|(picture, group)| (row(picture), group));
        let lies = Blocks::join(runs, rows, BLOCK);
        let mut set =
            Self { shards, units, lies, captions, spool, told, decode, notes, describe, fingerprint };
        set.told = paths::told(&set);
        set.notes.extend(set.told.repeats.as_ref().map(Repeats::note));
        Ok(set)
    }

    /// The picture of a row as the file holds it.
    fn picture(&self, row: usize) -> Result<Picture<'static>, Reject> {
        if row >= self.len() {
            return Err(reject("read_error", format!("the source has {}", count(self.len(), "row"))));
        }
        self.picture_at(self.captions.picture_of(row))
    }

    /// A picture, by its number in the files.
    fn picture_at(&self, picture: usize) -> Result<Picture<'static>, Reject> {
        let (unit, within) = self
            .units
            .find(picture)
            .ok_or_else(|| reject("read_error", format!("there is no picture {picture}")))?;
        let shard = &self.shards[unit.shard];
        let corrupt = |found: String| {
            let reason = if Lack::is_told(&found) { NO_MEMORY } else { "corrupt" };
            reject(reason, format!("{found}, in row group {}", unit.group))
        };
        let value = unit.value(shard, within, &self.spool).map_err(corrupt)?;
        match (value, &shard.columns.image) {
            (Value::None, _) => Err(reject("empty_image", "the picture is null")),
            (Value::Named(path), _) => shard.beside(&path),
            (Value::Bytes(bytes), Holds::Text(_)) if base64::address(&bytes).is_some() => {
                shard.beside(&String::from_utf8_lossy(&bytes))
            }
            (Value::Bytes(bytes), Holds::Text(_)) if base64::names_a_file(&bytes) => {
                shard.beside(&String::from_utf8_lossy(&bytes))
            }
            (Value::Bytes(bytes), Holds::Text(_)) => Ok(Picture::Base64(bytes.into())),
            (Value::Bytes(bytes), _) => Ok(Picture::Bytes(bytes.into())),
        }
    }

    fn bad(&self, row: usize, reason: &'static str, detail: String) -> BadSample {
        let unit = self.units.find(self.captions.picture_of(row));
        let (source, place) = match unit {
            Some((unit, within)) => {
                let file = self.shards[unit.shard].path.display().to_string();
                // A picture may have several captions, each a row; and there may be several files.
                let place = format!("{file}: picture {} (row {row})", unit.first_in_shard + within);
                (file, place)
            }
            None => (self.describe.clone(), format!("{} (row {row})", self.describe)),
        };
        BadSample { reason, detail, place, file: source, bytes: None }
    }
}

impl Shard {
    /// A picture file named in the table, which must lie below the table's folder.
    fn beside(&self, path: &str) -> Result<Picture<'static>, Reject> {
        if is_address(path) {
            return Err(reject(WEB_ADDRESS, not_fetched(path)));
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        match Root::new(folder).name(path) {
            Name::Inside(name) => Ok(Picture::File(folder.join(name))),
            Name::Outside(name) => Err(reject("outside_folder", leads_out(&name, folder))),
        }
    }
}

impl Source for Parquet {
    fn len(&self) -> usize {
        self.captions.rows()
    }

    fn caption_chars(&self, row: usize) -> usize {
        self.captions.chars(row)
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        let caption = self.captions.get(row).map(str::to_owned);
        caption.map_err(|(reason, detail)| self.bad(row, reason, detail))
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let caption = self.caption(row)?;
        let read = timed(Stage::Read, || self.picture(row))
            .and_then(|picture| picture.sample(caption, size, &self.decode, pixels));
        read.map_err(|reject| {
            // The file names it, and holds nothing itself.
            let named = ["missing_file", "outside_folder"].contains(&reject.reason);
            let alone = if named { ": the row holds this path alone, no bytes" } else { "" };
            self.bad(row, reject.reason, format!("{}{alone}", reject.detail)).seen(&reject)
        })
    }

    fn groups(&self) -> Option<&Groups> {
        self.captions.groups()
    }

    fn repeats(&self) -> Option<&Repeats> {
        self.told.repeats.as_ref()
    }

    fn blocks(&self) -> Option<&Blocks> {
        Some(&self.lies)
    }

    fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.blocks.len()).sum()
    }

    fn unknown_repeats(&self) -> Option<String> {
        self.told.unknown.map(Into::into)
    }

    fn describe(&self) -> String {
        self.describe.clone()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Covers the captions, and of each file its length, its footer (sizes and statistics of all columns) and the
    /// first bytes of each row group's pictures; not every byte of every picture.
    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Covers length and time of the last change of each file of the set; none if pictures may lie in other files.
    fn stamp(&self) -> Option<u64> {
        let mut stamp = Fingerprint::new("files");
        self.shards.iter().for_each(|shard| stamp.file(std::fs::metadata(&shard.path).ok().as_ref()));
        self.shards.iter().all(Shard::holds_all).then(|| stamp.value())
    }
}
