//! A reader that ends a record without end: a quotation mark that is never closed would take the whole rest of
//! a file into memory.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::memory::room;

/// A record with more bytes is none.
pub(super) const MAX_RECORD: u64 = 1 << 30;

/// A record of up to so many bytes is nothing to look after.
const LONG: u64 = 4 << 20;

/// Reads on while the record that began at `start` is no longer than `limit`.
pub(super) struct Bounded<R> {
    inner: R,
    read: u64,
    limit: u64,
    start: Rc<Cell<u64>>,
    /// Bytes up to which there is memory for a record.
    held: u64,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(inner: R, limit: u64) -> (Self, Rc<Cell<u64>>) {
        let start = Rc::new(Cell::new(0));
        (Self { inner, read: 0, limit, start: start.clone(), held: LONG }, start)
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read.saturating_sub(self.start.get()) > self.limit {
            let text = format!(
                "a record of more than {} bytes: is a quotation mark never closed, or a `\"` inside a field not \
                 doubled?",
                self.limit
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        // The parser doubles what it holds of a record.
        let record = self.read.saturating_sub(self.start.get());
        if record >= self.held {
            self.held = record.next_power_of_two();
            room(self.held * 2).map_err(|lack| {
                let text = format!("a record of {record} bytes or more: {lack}");
                io::Error::new(io::ErrorKind::FileTooLarge, text)
            })?;
        } else if record <= buffer.len() as u64 {
            self.held = LONG;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_records_end() {
        let (mut reader, start) = Bounded::new(&[7_u8; 100][..], 20);
        let mut buffer = [0; 10];
        for i in 0..8 {
            start.set(i * 10);
            assert_eq!(reader.read(&mut buffer).unwrap(), 10);
        }
        start.set(0);
        assert_eq!(reader.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
