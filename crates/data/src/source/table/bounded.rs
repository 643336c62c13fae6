//! A reader that ends a record without end: a quotation mark that is never closed would take the whole rest of
//! a file into memory. And one for which there is no memory, which is passed over then.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::rc::Rc;

use crate::memory::Lack;

/// A record with more bytes is none.
pub(super) const MAX_RECORD: u64 = 1 << 30;

/// A record of up to so many bytes is nothing to look after.
const LONG: u64 = 4 << 20;

/// Asks for bytes of memory.
pub(super) type Ask = fn(u64) -> Result<(), Lack>;

/// The error of a record that is longer than `limit`.
pub(super) fn too_long(limit: u64) -> io::Error {
    let text = format!(
        "a record of more than {limit} bytes: is a quotation mark never closed, or a `\"` inside a field not doubled?"
    );
    io::Error::new(ErrorKind::FileTooLarge, text)
}

/// True if a record was given up because there is no memory for it.
pub(super) fn is_lack(error: &csv::Error) -> bool {
    matches!(error.kind(), csv::ErrorKind::Io(e) if e.kind() == ErrorKind::OutOfMemory)
}

/// Reads on while the record that began at `start` is no longer than `limit`.
pub(super) struct Bounded<R> {
    inner: R,
    read: u64,
    limit: u64,
    start: Rc<Cell<u64>>,
    /// Bytes up to which there is memory for a record.
    held: u64,
    ask: Ask,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(inner: R, limit: u64, ask: Ask) -> (Self, Rc<Cell<u64>>) {
        let start = Rc::new(Cell::new(0));
        (Self { inner, read: 0, limit, start: start.clone(), held: LONG, ask }, start)
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read.saturating_sub(self.start.get()) > self.limit {
            return Err(too_long(self.limit));
        }
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        // The parser doubles what it holds of a record.
        let record = self.read.saturating_sub(self.start.get());
        if record >= self.held {
            self.held = (record + 1).next_power_of_two();
            (self.ask)(self.held).map_err(|lack| io::Error::new(ErrorKind::OutOfMemory, lack.to_string()))?;
        } else if record <= buffer.len() as u64 {
            self.held = LONG;
        }
        Ok(read)
    }
}

impl<R: Seek> Seek for Bounded<R> {
    /// To the beginning of a record.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.read = self.inner.seek(to)?;
        self.held = LONG;
        self.start.set(self.read);
        Ok(self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::room;

    #[test]
    fn only_long_records_end() {
        let (mut reader, start) = Bounded::new(&[7_u8; 100][..], 20, room);
        let mut buffer = [0; 10];
        for i in 0..8 {
            start.set(i * 10);
            assert_eq!(reader.read(&mut buffer).unwrap(), 10);
        }
        start.set(0);
        assert_eq!(reader.read(&mut buffer).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
