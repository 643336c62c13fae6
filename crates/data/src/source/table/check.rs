//! What is wrong with a record: a wrong number of fields, quotation marks without their pair, bytes that are no text.

use std::io::Read;

use csv::ByteRecord;

use super::{Part, Pictures, Quoting, Record, Table, swallowed};
use crate::source::SourceError;
use crate::source::encoding::Guess;
use crate::text::count;

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
                "{} where the header has {}: `{}`. Is a {}delimiter missing or too many?{}",
                count(fields.len(), "field"),
                self.names.len(),
                start_of(fields),
                if self.quoting == Quoting::None { "" } else { "quotation mark or a " },
                if has_mark(fields) { format!(" Or {OR_NO_QUOTING}") } else { String::new() },
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
                let found = format!("field {} is {e}. {advice}", i + 1);
                return Err(self.record_error(row, record.line, found));
            }
        }
        Ok(())
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
        let mut reader = self.alone(Part::new(&self.file, offset, length).chain(&behind[..]));
        let (mut record, mut records) = (self.room(length + behind.len() as u64), 0);
        while reader.read_byte_record(&mut record).map_err(|e| self.csv_error(e))? {
            records += 1;
        }
        if records < 2 {
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

/// The record's beginning, for a message.
fn start_of(record: &ByteRecord) -> String {
    let short = |field: &[u8]| field[..field.len().min(24)].escape_ascii().to_string();
    record.iter().take(3).map(short).collect::<Vec<_>>().join(" | ")
}
