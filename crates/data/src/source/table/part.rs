//! A part of a file, read without being held in memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use crate::source::positioned;

/// Reads some bytes of a file, whatever else reads it.
pub(super) struct Part<'a> {
    file: &'a File,
    offset: u64,
    end: u64,
}

impl<'a> Part<'a> {
    /// The `length` bytes from `offset` on.
    pub(super) fn new(file: &'a File, offset: u64, length: u64) -> Self {
        Self { file, offset, end: offset.saturating_add(length) }
    }
}

impl Read for Part<'_> {
    /// An end of the file before that of the part is an error.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let read = positioned::read_at(self.file, &mut buffer[..most], self.offset)?;
        if read == 0 && most > 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.offset += read as u64;
        Ok(read)
    }
}
