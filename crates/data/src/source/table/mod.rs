//! A table of text: a header line, then records of as many fields, divided by one character, quoted as in CSV.
//!
//! A table is read from end to end when it is opened ([`Table::records`]), which checks every record; single
//! records are then read again by their place. Records are never held in memory together.

mod bounded;
mod check;
mod columns;
mod long;
mod measure;
mod part;
mod swallowed;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ReaderBuilder};

use super::encoding::{Encoding, Guess};
use super::standin::{self, Wanted};
use super::{Delimiter, Quoting, SourceError, TextOptions, positioned, transcode};
use crate::memory;
use bounded::{Ask, Bounded, MAX_RECORD, is_lack};
pub(crate) use check::{LEAVE_UTF_8, NAME_THE_ENCODING};
pub(crate) use columns::Wish;
pub(crate) use long::Unheld;
use part::Part;

/// An opened table: its header is read.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    /// The file itself, or its copy in UTF-8.
    file: File,
    encoding: Encoding,
    delimiter: Delimiter,
    quoting: Quoting,
    names: Vec<String>,
    /// Bytes of the longest record.
    limit: u64,
    /// How memory for a record is asked for.
    ask: Ask,
}

/// The column with the pictures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pictures {
    pub(crate) column: usize,
    /// It holds base64, which need not be text: a damaged picture is one bad sample. Else names of files.
    pub(crate) base64: bool,
}

/// A record that was read and checked.
pub(crate) struct Record<'a> {
    pub(crate) fields: &'a ByteRecord,
    /// First byte.
    pub(crate) offset: u64,
    /// Bytes, the line end included.
    pub(crate) length: u64,
    /// Line on which it begins, from 1.
    pub(crate) line: u64,
}

impl Table {
    /// Opens `path` and reads its header.
    pub(crate) fn open(path: &Path, options: &TextOptions) -> Result<Self, SourceError> {
        let &TextOptions { delimiter, encoding, quoting, .. } = options;
        let mut file = standin::open(path, Wanted::Table(encoding))?;
        let mut read_as = encoding;
        if delimiter.is_swapped() || !encoding.keeps_ascii(delimiter.byte()) {
            (file, read_as) = (transcode::to_utf8(path, &file, encoding, delimiter)?, Encoding::UTF_8);
        }
        let mut table = Self {
            path: path.to_path_buf(),
            file,
            encoding: read_as,
            delimiter,
            quoting,
            names: Vec::new(),
            limit: MAX_RECORD,
            ask: memory::room,
        };
        table.names = table.header()?;
        Ok(table)
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The place of a column.
    pub(crate) fn column(&self, wish: &Wish<'_>) -> Result<usize, SourceError> {
        wish.find(&self.names)
            .map_err(|found| self.column_error(found + &columns::hint(&self.names, self.delimiter.char())))
    }

    /// The header.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a column.
    pub(crate) fn name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", |name| name)
    }

    pub(crate) fn column_error(&self, found: String) -> SourceError {
        SourceError::Column { path: self.path.clone(), place: "line 1: ", found }
    }

    /// The text of a field.
    pub(crate) fn text<'a>(&self, field: &'a [u8]) -> Result<std::borrow::Cow<'a, str>, String> {
        let text = self.encoding.decode(field).map_err(|bad| {
            let name = self.encoding.name();
            format!("not {name}, at its byte {}: `{}`", bad.at + 1, bad.found)
        });
        text.map(|text| self.delimiter.swap(text))
    }

    /// Reads all records and hands each to `each` with its row number; of one for which there is no memory, where it is.
    /// Damaged text means that the file has another encoding.
    ///
    /// # Errors
    /// If a record has not as many fields as the header, a text is none, or a quotation mark stays open or takes other
    /// records into its field.
    pub(crate) fn records(
        &self,
        pictures: Pictures,
        mut each: impl FnMut(usize, Result<&Record<'_>, Unheld>) -> Result<(), SourceError>,
    ) -> Result<usize, SourceError> {
        let (mut reader, start) = self.reader()?;
        let (mut fields, mut row, mut last) = (ByteRecord::new(), 0, None);
        let mut guess = Guess::new(self.encoding);
        reader.byte_headers().map_err(|e| self.csv_error(e))?;
        loop {
            let begin = reader.position().clone();
            match reader.read_byte_record(&mut fields) {
                Ok(false) => break,
                Ok(true) => {}
                Err(e) if is_lack(&e) => {
                    // What there is of it takes memory, too.
                    fields = ByteRecord::new();
                    let (unheld, next) = self.pass_over(row, begin)?;
                    last = Some((unheld.offset, unheld.length, unheld.line));
                    self.long(row, unheld, pictures, &mut guess, &mut each)?;
                    reader.seek(next).map_err(|e| self.csv_error(e))?;
                    row += 1;
                    continue;
                }
                Err(e) => return Err(self.broken(e, row, &begin)),
            }
            let Some(position) = fields.position() else { continue };
            let (offset, line) = self.skip_line_ends(position.byte(), position.line())?;
            let end = reader.position().byte();
            start.set(end);
            let record = Record { fields: &fields, offset, length: end.saturating_sub(offset), line };
            self.check(row, &record, pictures, &mut guess)?;
            each(row, Ok(&record))?;
            last = Some((record.offset, record.length, line));
            row += 1;
        }
        // It may be as long as a picture.
        drop(fields);
        let Some((offset, length, line)) = last else {
            return Err(SourceError::not_usable(&self.path, "has a header line but no row"));
        };
        self.refuse_open_quote(row - 1, offset, length, line)?;
        if let Some(line) = guess.utf8_since() {
            let found = format!(
                "line {line}: this text and all others are UTF-8, not {}: leave data_config.encoding=utf-8",
                self.encoding.name()
            );
            return Err(SourceError::not_usable(&self.path, found));
        }
        Ok(row)
    }

    /// Reads one record again.
    pub(crate) fn read(&self, offset: u64, length: u64) -> Result<ByteRecord, String> {
        let changed = |what: String| format!("{what}: was the file changed while it was in use?");
        let mut record = self.room(length);
        let mut reader = self.alone(Part::new(&self.file, offset, length));
        let found = reader.read_byte_record(&mut record).map_err(|e| changed(e.to_string()))?;
        let fields = if found { record.len() } else { 0 };
        if fields != self.names.len() {
            return Err(changed(format!("{fields} fields instead of {}", self.names.len())));
        }
        Ok(record)
    }

    /// A record as large as one of `length` bytes must be: growing would take twice as much.
    fn room(&self, length: u64) -> ByteRecord {
        ByteRecord::with_capacity(length.min(MAX_RECORD) as usize, self.names.len())
    }

    /// A reader of records without a header. It has an empty one, for the parser would keep two copies of the first
    /// record, whose picture may be large.
    fn alone<R: Read>(&self, records: R) -> csv::Reader<R> {
        let mut reader = self.builder().from_reader(records);
        reader.set_byte_headers(ByteRecord::new());
        reader
    }

    /// An error about a record.
    pub(crate) fn record_error(&self, row: usize, line: u64, found: String) -> SourceError {
        SourceError::Record { path: self.path.clone(), line, row, found }
    }

    fn header(&self) -> Result<Vec<String>, SourceError> {
        let (mut reader, _) = self.reader()?;
        let header = reader.byte_headers().map_err(|e| self.csv_error(e))?;
        let name = |field: &[u8]| self.text(field).map(|n| n.trim().to_owned());
        header
            .iter()
            .map(name)
            .collect::<Result<_, _>>()
            .map_err(|e| self.column_error(format!("the header is {e}. {NAME_THE_ENCODING}")))
    }

    /// A reader of the whole table, and the cell that holds where the present record begins.
    fn reader(&self) -> Result<(csv::Reader<Bounded<&File>>, Start), SourceError> {
        (&self.file).seek(SeekFrom::Start(0)).map_err(|e| SourceError::io(&self.path, e))?;
        let (bounded, start) = Bounded::new(&self.file, self.limit, self.ask);
        Ok((self.builder().from_reader(bounded), start))
    }

    /// Counts fields itself, so that the message about a wrong number of them can be better than the crate's.
    fn builder(&self) -> ReaderBuilder {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter.byte()).flexible(true).buffer_capacity(1 << 16);
        builder.quoting(self.quoting == Quoting::Minimal);
        builder
    }

    /// What [`builder`](Self::builder) makes, without anything that holds records.
    fn parser(&self) -> csv_core::Reader {
        let mut builder = csv_core::ReaderBuilder::new();
        builder.delimiter(self.delimiter.byte()).quoting(self.quoting == Quoting::Minimal).build()
    }

    /// The parser counts blank lines, and the second half of `\r\n`, to the record that follows.
    fn skip_line_ends(&self, mut offset: u64, mut line: u64) -> Result<(u64, u64), SourceError> {
        let mut bytes = [0; 64];
        loop {
            let n = positioned::read_at(&self.file, &mut bytes, offset)
                .map_err(|e| SourceError::io(&self.path, e))?;
            let blank = bytes[..n].iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
            line += bytes[..blank].iter().filter(|b| **b == b'\n').count() as u64;
            offset += blank as u64;
            if blank < n || n == 0 {
                return Ok((offset, line));
            }
        }
    }

    /// The error of the record that begins at, or behind blank lines after, `begin`.
    fn broken(&self, error: csv::Error, row: usize, begin: &csv::Position) -> SourceError {
        let csv::ErrorKind::Io(long) = error.kind() else { return self.csv_error(error) };
        if long.kind() != ErrorKind::FileTooLarge {
            return self.csv_error(error);
        }
        match self.skip_line_ends(begin.byte(), begin.line()) {
            Ok((_, line)) => self.record_error(row, line, long.to_string()),
            Err(other) => other,
        }
    }

    fn csv_error(&self, error: csv::Error) -> SourceError {
        match error.into_kind() {
            csv::ErrorKind::Io(e) if e.kind() == ErrorKind::FileTooLarge => self.column_error(e.to_string()),
            csv::ErrorKind::Io(e) => SourceError::io(&self.path, e),
            other => SourceError::not_usable(&self.path, format!("is not readable as CSV: {other:?}")),
        }
    }
}

type Start = std::rc::Rc<std::cell::Cell<u64>>;
