//! A record for which there is no memory: passed over, or read once its length is known.

use std::io::ErrorKind;

use super::measure::measure;
use super::part::Part;
use super::{Pictures, Record, Table};
use crate::source::SourceError;
use crate::source::encoding::Guess;

/// A record that was not read, for there is no memory for it.
pub(crate) struct Unheld {
    /// First byte.
    pub(crate) offset: u64,
    /// Bytes, the line end included.
    pub(crate) length: u64,
    /// Line on which it begins, from 1.
    pub(crate) line: u64,
    /// What was asked for; for a person.
    pub(crate) found: String,
}

impl Table {
    /// Finds the end of a record that begins at, or behind blank lines after, `begin`; and where the next begins.
    pub(super) fn pass_over(
        &self,
        row: usize,
        begin: csv::Position,
    ) -> Result<(Unheld, csv::Position), SourceError> {
        let (offset, line) = self.skip_line_ends(begin.byte(), begin.line())?;
        let io = |e| SourceError::io(&self.path, e);
        let rest = self.file.metadata().map_err(io)?.len().saturating_sub(offset);
        let found = measure(self.parser(), Part::new(&self.file, offset, rest), 1, self.limit);
        let found = found.map_err(|e| match e.kind() {
            ErrorKind::FileTooLarge => self.record_error(row, line, e.to_string()),
            _ => io(e),
        })?;
        let mut next = begin;
        next.set_byte(offset + found.bytes).set_line(line + found.lines);
        Ok((Unheld { offset, length: found.bytes, line, found: String::new() }, next))
    }

    /// Reads a record for which there was no memory while it grew: its length is known now, and is all that it takes.
    pub(super) fn long(
        &self,
        row: usize,
        unheld: Unheld,
        pictures: Pictures,
        guess: &mut Guess,
        each: &mut impl FnMut(usize, Result<&Record<'_>, Unheld>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let Unheld { offset, length, line, .. } = unheld;
        if let Err(lack) = (self.ask)(length) {
            let found = format!("a record of {length} bytes: {lack}");
            return each(row, Err(Unheld { found, ..unheld }));
        }
        let mut fields = self.room(length);
        let mut reader = self.alone(Part::new(&self.file, offset, length));
        reader.read_byte_record(&mut fields).map_err(|e| self.csv_error(e))?;
        let record = Record { fields: &fields, offset, length, line };
        self.check(row, &record, pictures, guess)?;
        each(row, Ok(&record))
    }
}
