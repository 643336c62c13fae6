//! Slices read one after the other, without being copied together first.

use std::io::{BufRead, Error, ErrorKind, Read, Result, Seek, SeekFrom};

/// A reader of slices in their order.
pub(super) struct Pieces<'a> {
    pieces: std::vec::IntoIter<&'a [u8]>,
    /// What is left of the piece that is being read.
    rest: &'a [u8],
}

impl<'a> Pieces<'a> {
    pub(super) fn new(pieces: Vec<&'a [u8]>) -> Self {
        Self { pieces: pieces.into_iter(), rest: &[] }
    }
}

impl BufRead for Pieces<'_> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        while self.rest.is_empty() {
            let Some(next) = self.pieces.next() else { break };
            self.rest = next;
        }
        Ok(self.rest)
    }

    fn consume(&mut self, n: usize) {
        self.rest = &self.rest[n..];
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let n = self.fill_buf()?.read(out)?;
        self.consume(n);
        Ok(n)
    }
}

/// The decoder asks for a reader that can seek, and never does.
impl Seek for Pieces<'_> {
    fn seek(&mut self, _: SeekFrom) -> Result<u64> {
        Err(Error::from(ErrorKind::Unsupported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_in_order() {
        let mut reader = Pieces::new(vec![b"ab", b"", b"c", b"", b"", b"def", b""]);
        let mut all = String::new();
        assert_eq!(reader.read_to_string(&mut all).unwrap(), 6);
        assert_eq!(all, "abcdef");
        assert!(reader.seek(SeekFrom::Start(0)).is_err());
    }
}
