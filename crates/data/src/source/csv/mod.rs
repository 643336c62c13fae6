//! A table of pictures in base64 and captions: CSV, TSV, or with any other character between fields.
//!
//! The file is read once from end to end when it is opened: that checks it and builds an index (where each
//! record is, how long its caption is). Rows are then read from the disk one by one. What is kept in memory
//! grows with the number of rows, never with the pictures.

mod index;
mod paths;

use std::path::{Path, PathBuf};

use csv::ByteRecord;

use super::caption::{BAD_ENCODING, clean_caption, no_text};
use super::picture::Picture;
use super::table::{Table, Wish};
use super::{BadSample, Delimiter, Repeats, Sample, Source, SourceError, TextOptions};
use crate::image::{NO_MEMORY, Reject};
use crate::memory::room;
use crate::stages::{Stage, timed};
use crate::text::count;
use index::{Entry, Index};

/// An opened and checked table.
#[derive(Debug)]
pub struct Csv {
    path: PathBuf,
    table: Table,
    columns: Columns,
    options: TextOptions,
    index: Index,
}

/// Where the two wanted columns are, counted from 0.
#[derive(Clone, Copy, Debug)]
struct Columns {
    image: usize,
    caption: usize,
}

/// Usual names of a column with pictures in base64.
const IMAGE: &[&str] =
    &["b64string_images", "image", "picture", "img", "image_base64", "image_b64", "base64", "b64"];

/// What a picture is whose end is missing.
const DAMAGED: [&str; 3] = ["bad_base64", "truncated", "corrupt"];

impl Csv {
    /// Opens `path` and reads it through once.
    ///
    /// # Errors
    /// If the file cannot be used as a whole: missing, empty, something else in its place, without the
    /// columns, in another encoding, or with records of unequal length. A bad picture or an empty caption is
    /// not an error here: it is a [`BadSample`] when its row is read.
    pub fn open(path: impl AsRef<Path>, options: &TextOptions) -> Result<Self, SourceError> {
        let path = path.as_ref().to_path_buf();
        let table = Table::open(&path, options)?;
        let image = Wish { given: options.image_col.as_deref(), usual: IMAGE, key: "data_config.image_col" };
        let caption = Wish::caption(options.caption_col.as_deref());
        let columns = Columns { image: table.column(&image)?, caption: table.column(&caption)? };
        if columns.image == columns.caption {
            let name = table.name(columns.image);
            return Err(table.column_error(format!("picture and caption cannot both be the column `{name}`")));
        }
        let index = Index::build(&table, columns)?;
        if index.rows.iter().all(|row| row.caption_chars == 0) {
            let (rows, column) = (count(index.rows.len(), "row"), table.name(columns.caption));
            let found = match index.unheld.first_key_value() {
                Some((row, found)) => format!("none of its {rows} can be read; row {row} is {found}"),
                None => format!("none of its {rows} has a caption in `{column}`"),
            };
            return Err(SourceError::not_usable(&path, found));
        }
        Ok(Self { path, table, columns, options: options.clone(), index })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the record of `row` from the disk.
    fn record(&self, row: usize) -> Result<ByteRecord, BadSample> {
        let Some(entry) = self.index.rows.get(row) else {
            return Err(self.bad(row, "read_error", format!("the source has {}", count(self.len(), "row"))));
        };
        if let Some(found) = self.index.unheld.get(&row) {
            return Err(self.bad(row, NO_MEMORY, found.clone()));
        }
        room(entry.length).map_err(|lack| self.bad(row, NO_MEMORY, lack.to_string()))?;
        self.table.read(entry.offset, entry.length).map_err(|detail| self.bad(row, "read_error", detail))
    }

    fn caption_of(&self, row: usize, record: &ByteRecord) -> Result<String, BadSample> {
        let raw = self.table.text(&record[self.columns.caption]);
        let caption = clean_caption(&raw.map_err(|detail| self.bad(row, "read_error", detail))?);
        if caption.is_empty() {
            let column = self.table.name(self.columns.caption);
            return Err(self.bad(row, "empty_caption", format!("nothing in the column `{column}`")));
        }
        match no_text(&caption) {
            Some(found) => Err(self.bad(row, BAD_ENCODING, found)),
            None => Ok(caption),
        }
    }

    /// A doubt about a picture that the file ends with.
    fn cut(&self, row: usize) -> &'static str {
        let last = self.index.rows.get(row).filter(|_| row + 1 == self.len());
        let cut = last.is_some_and(|entry| self.table.ends_without_line_end(entry.offset, entry.length));
        if cut { ". The last line of the file has no line end, so the file seems cut" } else { "" }
    }

    fn bad(&self, row: usize, reason: &'static str, detail: String) -> BadSample {
        let line = self.index.rows.get(row).map_or(0, |entry: &Entry| entry.line);
        let source = self.path.display().to_string();
        BadSample { reason, detail, place: format!("{source}:{line} (row {row})"), file: source, bytes: None }
    }
}

impl Source for Csv {
    fn len(&self) -> usize {
        self.index.rows.len()
    }

    fn caption_chars(&self, row: usize) -> usize {
        self.index.rows.get(row).map_or(0, |entry| entry.caption_chars as usize)
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        self.caption_of(row, &self.record(row)?)
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let record = timed(Stage::Read, || self.record(row))?;
        let caption = self.caption_of(row, &record)?;
        let bad = |reject: Reject| {
            let cut = if DAMAGED.contains(&reject.reason) { self.cut(row) } else { "" };
            let detail = format!("{}{cut}", reject.detail);
            self.bad(row, reject.reason, detail).seen(&reject)
        };
        let picture = Picture::Base64(record[self.columns.image].into());
        let picture = timed(Stage::Read, || picture.loaded()).map_err(bad)?;
        // The text is longer than the picture.
        drop(record);
        picture.sample(caption, size, &self.options.decode, pixels).map_err(bad)
    }

    fn describe(&self) -> String {
        let kind = if self.options.delimiter == Delimiter::TAB { "tsv" } else { "csv" };
        format!("{kind} {} ({})", self.path.display(), count(self.len(), "row"))
    }

    fn notes(&self) -> Vec<String> {
        let [image, caption] = [self.columns.image, self.columns.caption].map(|c| self.table.name(c));
        let chosen = self.options.image_col.is_none() || self.options.caption_col.is_none();
        let columns = chosen.then(|| format!("columns: `{image}` holds pictures, `{caption}` captions"));
        let repeated = self.index.repeats.as_ref().map(Repeats::note);
        columns.into_iter().chain(repeated).collect()
    }

    fn repeats(&self) -> Option<&Repeats> {
        self.index.repeats.as_ref()
    }

    fn fingerprint(&self) -> u64 {
        self.index.fingerprint
    }

    /// The fingerprint covers every byte of pictures and captions.
    fn stamp(&self) -> Option<u64> {
        Some(self.index.fingerprint)
    }
}
