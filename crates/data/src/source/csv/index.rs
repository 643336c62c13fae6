//! The one pass over a CSV file: checks every record and notes where it is.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::Path;

use csv::{ByteRecord, Reader};

use super::{Columns, CsvOptions, builder, columns};
use crate::source::fingerprint::Fingerprint;
use crate::source::{SourceError, clean_caption, positioned};

/// What is kept of a row.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// First byte of the record.
    pub(super) offset: u64,
    /// Bytes of the record, its line end included.
    pub(super) length: u64,
    /// Line on which it begins, from 1.
    pub(super) line: u64,
    /// Characters of the cleaned caption, 0 if the row cannot be used.
    pub(super) caption_chars: u32,
}

/// The whole index.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) rows: Vec<Entry>,
    pub(super) columns: Columns,
    /// Of the pictures' text and the cleaned captions, in order.
    pub(super) fingerprint: u64,
}

impl Index {
    /// Reads `file` from end to end.
    pub(super) fn build(path: &Path, file: &File, options: &CsvOptions) -> Result<Self, SourceError> {
        let io = |e| SourceError::io(path, e);
        (&*file).seek(SeekFrom::Start(0)).map_err(io)?;
        let mut reader = builder(options).from_reader(BufReader::with_capacity(1 << 16, file));
        let header = reader.byte_headers().map_err(|e| csv_error(path, e))?.clone();
        let columns = columns::find(path, &header, options)?;
        let mut pass = Pass { path, file, columns, rows: Vec::new(), fingerprint: Fingerprint::new("csv") };
        pass.records(&mut reader)?;
        if pass.rows.is_empty() {
            return Err(SourceError::not_usable(path, "has a header line but no row"));
        }
        pass.refuse_open_quote(options)?;
        Ok(Self { rows: pass.rows, columns, fingerprint: pass.fingerprint.value() })
    }
}

struct Pass<'a> {
    path: &'a Path,
    file: &'a File,
    columns: Columns,
    rows: Vec<Entry>,
    fingerprint: Fingerprint,
}

impl Pass<'_> {
    fn records(&mut self, reader: &mut Reader<impl std::io::Read>) -> Result<(), SourceError> {
        let mut record = ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(|e| csv_error(self.path, e))? {
            let Some(position) = record.position() else { continue };
            let (offset, line) = self.skip_line_ends(position.byte(), position.line())?;
            let end = reader.position().byte();
            self.check(&record, line)?;
            let caption = clean_caption(&String::from_utf8_lossy(&record[self.columns.caption]));
            let caption_chars = u32::try_from(caption.chars().count()).unwrap_or(u32::MAX);
            self.fingerprint.field(&record[self.columns.image]);
            self.fingerprint.field(caption.as_bytes());
            self.rows.push(Entry { offset, length: end.saturating_sub(offset), line, caption_chars });
        }
        Ok(())
    }

    /// The parser counts blank lines, and the second half of `\r\n`, to the record that follows.
    fn skip_line_ends(&self, mut offset: u64, mut line: u64) -> Result<(u64, u64), SourceError> {
        let mut bytes = [0; 64];
        loop {
            let n = positioned::read_at(self.file, &mut bytes, offset)
                .map_err(|e| SourceError::io(self.path, e))?;
            let blank = bytes[..n].iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
            line += bytes[..blank].iter().filter(|b| **b == b'\n').count() as u64;
            offset += blank as u64;
            if blank < n || n == 0 {
                return Ok((offset, line));
            }
        }
    }

    /// Checks the fields of one record.
    fn check(&self, record: &ByteRecord, line: u64) -> Result<(), SourceError> {
        if record.len() != self.columns.count {
            let found = format!(
                "{} where the header has {}: `{}`. Is a quotation mark or a delimiter missing or too many?",
                fields(record.len()),
                self.columns.count,
                start_of(record)
            );
            return Err(self.record_error(line, found));
        }
        for (i, field) in record.iter().enumerate() {
            // A damaged picture is one bad sample; damaged text means that the file has another encoding.
            if let Err(e) = std::str::from_utf8(field)
                && i != self.columns.image
            {
                let bad = &field[e.valid_up_to()..field.len().min(e.valid_up_to() + 8)];
                let found = format!(
                    "field {} is not UTF-8, at its byte {}: `{}`. Save the file as UTF-8",
                    i + 1,
                    e.valid_up_to() + 1,
                    bad.escape_ascii()
                );
                return Err(self.record_error(line, found));
            }
        }
        Ok(())
    }

    /// A quotation mark that is never closed swallows the rest of the file into the last field. The parser
    /// accepts that; but then what is put behind the record does not become a record of its own.
    fn refuse_open_quote(&self, options: &CsvOptions) -> Result<(), SourceError> {
        let Some(last) = self.rows.last() else { return Ok(()) };
        let io = |e| SourceError::io(self.path, e);
        let mut bytes = vec![0; usize::try_from(last.length).unwrap_or(0)];
        positioned::read_exact_at(self.file, &mut bytes, last.offset).map_err(io)?;
        bytes.extend(b"\n0");
        let records = builder(options).has_headers(false).from_reader(&bytes[..]).byte_records().count();
        if records < 2 {
            let found = "a quotation mark is opened and never closed: the file is cut, or a `\"` inside a \
                         field is not doubled";
            return Err(SourceError::Record {
                path: self.path.to_path_buf(),
                line: last.line,
                row: self.rows.len() - 1,
                found: found.into(),
            });
        }
        Ok(())
    }

    fn record_error(&self, line: u64, found: String) -> SourceError {
        SourceError::Record { path: self.path.to_path_buf(), line, row: self.rows.len(), found }
    }
}

fn fields(n: usize) -> String {
    if n == 1 { "1 field".into() } else { format!("{n} fields") }
}

/// The record's beginning, for a message.
fn start_of(record: &ByteRecord) -> String {
    let short = |field: &[u8]| field[..field.len().min(24)].escape_ascii().to_string();
    record.iter().take(3).map(short).collect::<Vec<_>>().join(" | ")
}

fn csv_error(path: &Path, error: csv::Error) -> SourceError {
    match error.into_kind() {
        csv::ErrorKind::Io(e) => SourceError::io(path, e),
        other => SourceError::not_usable(path, format!("is not readable as CSV: {other:?}")),
    }
}
