//! A CSV file of pictures in base64 and captions.
//!
//! The file is read once from end to end when it is opened: that checks it and builds an index (where each
//! record is, how long its caption is). Rows are then read from the disk one by one. What is kept in memory
//! grows with the number of rows, never with the pictures.

mod columns;
mod index;
mod standin;

use std::fs::File;
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ReaderBuilder};

use super::{BadSample, FILE_NAME, Sample, Source, SourceError, base64, clean_caption, positioned};
use crate::image::{DecodeOptions, Reject, decode, resize};
use crate::text::count;
use index::{Entry, Index};

/// How a CSV file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// Name of the column with the pictures.
    pub image_col: String,
    /// Name of the column with the captions.
    pub caption_col: String,
    /// What stands between fields, one ASCII character.
    pub delimiter: u8,
    /// How pictures are decoded.
    pub decode: DecodeOptions,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            image_col: "b64string_images".into(),
            caption_col: "caption".into(),
            delimiter: b',',
            decode: DecodeOptions::default(),
        }
    }
}

/// An opened and checked CSV file.
#[derive(Debug)]
pub struct Csv {
    path: PathBuf,
    file: File,
    options: CsvOptions,
    index: Index,
}

/// Where the two wanted columns are, counted from 0.
#[derive(Clone, Copy, Debug)]
struct Columns {
    image: usize,
    caption: usize,
    /// How many fields every record has.
    count: usize,
}

impl Csv {
    /// Opens `path` and reads it through once.
    ///
    /// # Errors
    /// If the file cannot be used as a whole: missing, empty, something else in its place, without the
    /// columns, not UTF-8, or with records of unequal length. A bad picture or an empty caption is not an
    /// error here: it is a [`BadSample`] when its row is read.
    pub fn open(path: impl AsRef<Path>, options: &CsvOptions) -> Result<Self, SourceError> {
        let path = path.as_ref().to_path_buf();
        let file = File::open(&path).map_err(|e| SourceError::io(&path, e))?;
        standin::refuse_standins(&path, &file)?;
        let index = Index::build(&path, &file, options)?;
        Ok(Self { path, file, options: options.clone(), index })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the record of `row` from the disk. Must not be called with a row that does not exist.
    fn record(&self, row: usize) -> Result<ByteRecord, BadSample> {
        let changed = |what: String| {
            self.bad(row, "read_error", format!("{what}: was the file changed while it was in use?"))
        };
        let Some(entry) = self.index.rows.get(row) else {
            return Err(self.bad(row, "read_error", format!("there are {} rows", self.len())));
        };
        let mut bytes = vec![0; usize::try_from(entry.length).map_err(|e| changed(e.to_string()))?];
        positioned::read_exact_at(&self.file, &mut bytes, entry.offset)
            .map_err(|e| changed(e.to_string()))?;
        let mut record = ByteRecord::new();
        let mut reader = builder(&self.options).has_headers(false).from_reader(&bytes[..]);
        let found = reader.read_byte_record(&mut record).map_err(|e| changed(e.to_string()))?;
        let fields = if found { record.len() } else { 0 };
        if fields != self.index.columns.count {
            return Err(changed(format!("{fields} fields instead of {}", self.index.columns.count)));
        }
        Ok(record)
    }

    fn caption_of(&self, row: usize, record: &ByteRecord) -> Result<String, BadSample> {
        let field = &record[self.index.columns.caption];
        let raw = std::str::from_utf8(field).map_err(|e| self.bad(row, "read_error", e.to_string()))?;
        let caption = clean_caption(raw);
        if caption.is_empty() {
            let column = &self.options.caption_col;
            return Err(self.bad(row, "empty_caption", format!("nothing in the column `{column}`")));
        }
        Ok(caption)
    }

    fn no_base64(&self, row: usize, text: &[u8], detail: String) -> BadSample {
        if base64::names_a_file(text) {
            let name = String::from_utf8_lossy(text.trim_ascii());
            return self.bad(row, FILE_NAME, format!("`{name}` names a file, where base64 is wanted"));
        }
        self.bad(row, "bad_base64", detail)
    }

    fn bad(&self, row: usize, reason: &'static str, detail: String) -> BadSample {
        let line = self.index.rows.get(row).map_or(0, |entry: &Entry| entry.line);
        BadSample { reason, detail, place: format!("{}:{line} (row {row})", self.path.display()) }
    }
}

/// Counts fields itself, so that the message about a wrong number of them can be better than the crate's.
fn builder(options: &CsvOptions) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(options.delimiter).flexible(true);
    builder
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

    fn read(&self, row: usize, size: usize) -> Result<Sample, BadSample> {
        let record = self.record(row)?;
        let caption = self.caption_of(row, &record)?;
        let text = &record[self.index.columns.image];
        if text.trim_ascii().is_empty() {
            let detail = format!("nothing in the column `{}`", self.options.image_col);
            return Err(self.bad(row, "empty_image", detail));
        }
        let bytes = base64::decode(text).map_err(|detail| self.no_base64(row, text, detail))?;
        let reject = |reject: Reject| self.bad(row, reject.reason, reject.detail);
        let picture = decode(&bytes, &self.options.decode).map_err(reject)?;
        let pixels = resize(&picture, size).map_err(reject)?;
        Ok(Sample { pixels, caption, warnings: picture.warnings })
    }

    fn describe(&self) -> String {
        format!("csv {} ({})", self.path.display(), count(self.len(), "row"))
    }

    fn fingerprint(&self) -> u64 {
        self.index.fingerprint
    }
}
