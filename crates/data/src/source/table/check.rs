//! What is wrong with a record: a wrong number of fields, quotation marks without their pair, bytes that are no text.

use std::io::Read;

use csv::ByteRecord;

use super::measure::measure;
use super::{Part, Pictures, Quoting, Record, Table, swallowed};
use crate::source::encoding::Guess;
use crate::source::{SourceError, positioned};
use crate::text::{count, printable};

/// What to do about UTF-8 under another name.
pub(crate) const LEAVE_UTF_8: &str = "It is UTF-8: leave data_config.encoding=utf-8";

/// What to do about text that is none in the encoding.
pub(crate) const NAME_THE_ENCODING: &str = "Save the file as UTF-8, or name its encoding in data_config.encoding (windows-1252, shift_jis, gbk, ...)";

/// What to do about marks that quote nothing.
const OR_NO_QUOTING: &str =
    "if quotation marks stand for themselves in this file, set data_config.quoting=none";

impl Table {
    /// Checks the fields of one record.
    pub(super) fn check(
        &self,
        row: usize,
        record: &Record<'_>,
        pictures: Pictures,
        guess: &mut Guess,
    ) -> Result<(), SourceError> {
        let fields = record.fields;
        if fields.len() != self.names.len() {
            let found = format!(
                "{} where the header has {}: `{}`. {}{}",
                count(fields.len(), "field"),
                self.names.len(),
                start_of(fields),
                self.cut(record),
                self.miscounted(fields)
            );
            return Err(self.record_error(row, record.line, found));
        }
        if let Some(found) = swallowed::find(fields, pictures, self.delimiter.byte()) {
            let found = format!(
                "the quotation mark that begins field {} ends behind line {}, which is a record of its own (`{}`): double \
                 the marks inside a field and put one around it; {OR_NO_QUOTING}",
                found.field + 1,
                record.line + found.lines,
                found.shown
            );
            return Err(self.record_error(row, record.line, found));
        }
        let raw = |i: usize| pictures.base64 && i == pictures.column;
        for (i, field) in fields.iter().enumerate().filter(|(i, _)| !raw(*i)) {
            guess.look(field, record.line);
            if let Err(e) = self.text(field) {
                let utf8 = std::str::from_utf8(field).is_ok();
                let advice = if utf8 { LEAVE_UTF_8 } else { NAME_THE_ENCODING };
                let found = format!("field {} is {e}. {}{advice}", i + 1, self.cut(record));
                return Err(self.record_error(row, record.line, found));
            }
        }
        Ok(())
    }

    /// Why a record may have another number of fields than the header, and what to do.
    fn miscounted(&self, fields: &ByteRecord) -> String {
        if self.quoting == Quoting::None {
            return "Is a delimiter missing or too many?".into();
        }
        if let Some(field) = fields.iter().position(has_blank_mark) {
            return format!(
                "Field {} has a blank before its quotation mark, so that the mark quotes nothing: take such blanks away, \
                 here and in other rows",
                field + 1
            );
        }
        let or = if has_mark(fields) { format!(" Or {OR_NO_QUOTING}") } else { String::new() };
        format!("Is a quotation mark or a delimiter missing or too many?{or}")
    }

    /// A doubt about a record that the file ends with.
    fn cut(&self, record: &Record<'_>) -> &'static str {
        let open = self.ends_without_line_end(record.offset, record.length);
        if open { "The last line has no line end, so the file seems cut. Else: " } else { "" }
    }

    /// True if this record is the last, and no line end is behind it: where that is odd, the file is cut.
    pub(crate) fn ends_without_line_end(&self, offset: u64, length: u64) -> bool {
        let end = offset.saturating_add(length);
        let is_last = self.file.metadata().is_ok_and(|file| file.len() <= end);
        let mut last = [0];
        let read = positioned::read_at(&self.file, &mut last, end.saturating_sub(1));
        is_last && read.is_ok_and(|read| read == 1) && !matches!(last[0], b'\n' | b'\r')
    }

    /// A quotation mark that is never closed swallows the rest of the file into the last field. The parser
    /// accepts that; but then what is put behind the record does not become a record of its own.
    pub(super) fn refuse_open_quote(
        &self,
        row: usize,
        offset: u64,
        length: u64,
        line: u64,
    ) -> Result<(), SourceError> {
        let behind = b"\n0";
        let text = Part::new(&self.file, offset, length).chain(&behind[..]);
        let found = measure(self.parser(), text, 2, u64::MAX).map_err(|e| SourceError::io(&self.path, e))?;
        if found.records < 2 {
            let found = format!(
                "a quotation mark is opened and never closed: the file is cut, or a `\"` inside a field is not doubled; \
                 {OR_NO_QUOTING}"
            );
            return Err(self.record_error(row, line, found));
        }
        Ok(())
    }
}

/// True if a mark or a line end is in a field: marks decided where it ends.
fn has_mark(record: &ByteRecord) -> bool {
    record.iter().any(|field| field.iter().any(|b| matches!(b, b'"' | b'\n' | b'\r')))
}

/// True if blanks are before the mark that was to begin a field.
fn has_blank_mark(field: &[u8]) -> bool {
    let text = field.trim_ascii_start();
    text.len() < field.len() && text.starts_with(b"\"")
}

/// The record's beginning, for a message.
fn start_of(record: &ByteRecord) -> String {
    let short = |field: &[u8]| printable(field, 24);
    record.iter().take(3).map(short).collect::<Vec<_>>().join(" | ")
}
