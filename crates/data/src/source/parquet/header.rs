//! The header of a page, looked through before the parquet reader sees it: that reader believes every length in it, and
//! asks for as much memory.
//!
//! A header is a structure in thrift's compact protocol. Writers put fields in the order of their numbers; a header in which
//! they are not, or one twice, has no one meaning, and is refused.

use std::io::{self, ErrorKind, Read};

/// A header with more bytes is none; statistics are part of it, and may hold a picture.
const MAX_BYTES: u64 = 64 << 20;
/// Structures and lists within each other, at most.
const DEPTH: usize = 8;

/// What a header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Its own length in bytes.
    pub(super) len: u64,
    /// Bytes of the page unpacked.
    pub(super) unpacked: u64,
    /// Bytes of the page in the file.
    pub(super) packed: u64,
    /// First bytes of the page that are never compressed.
    pub(super) levels: u64,
    /// The page is not compressed, whatever the column is.
    pub(super) plain: bool,
}

/// Reads the header that `bytes` begin with.
pub(super) fn read(bytes: impl Read) -> io::Result<Header> {
    let mut walk = Walk { bytes: bytes.take(MAX_BYTES), read: 0, header: Header::default(), seen: 0 };
    walk.structure(&mut Vec::new())?;
    // Kind, size unpacked and size in the file are never left out.
    if walk.seen & 0b1110 != 0b1110 {
        return Err(wrong("without its sizes"));
    }
    walk.header.len = walk.read;
    Ok(walk.header)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the header of a page is damaged: it is {what}"))
}

/// Kinds of fields.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

struct Walk<R> {
    bytes: io::Take<R>,
    read: u64,
    header: Header,
    /// Bit `n`: the field `n` of the header itself was there.
    seen: u32,
}

impl<R: Read> Walk<R> {
    /// A structure within the fields `path`.
    fn structure(&mut self, path: &mut Vec<i64>) -> io::Result<()> {
        let mut last = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            let id = match i64::from(byte >> 4) {
                0 => zigzag(self.number()?),
                step => last + step,
            };
            if id <= last || id > i64::from(i16::MAX) {
                return Err(wrong("out of order"));
            }
            last = id;
            path.push(id);
            self.value(byte & 0xf, path)?;
            path.pop();
        }
    }

    /// A value at the place `path`. Structures and lists are entered here alone, so that none escapes the limit of depth.
    fn value(&mut self, kind: u8, path: &mut Vec<i64>) -> io::Result<()> {
        if path.len() > DEPTH {
            return Err(wrong("too deep"));
        }
        match kind {
            kind::TRUE | kind::FALSE => self.take_note(path, i64::from(kind == kind::TRUE)),
            kind::BYTE => self.byte().map(drop),
            kind::I16..=kind::I64 => {
                let number = zigzag(self.number()?);
                self.take_note(path, number)
            }
            kind::DOUBLE => self.skip(8),
            kind::BINARY => {
                let len = self.number()?;
                self.skip(len)
            }
            kind::LIST | kind::SET => self.list(path),
            kind::STRUCT => self.structure(path),
            _ => Err(wrong("of an unknown kind")),
        }
    }

    fn list(&mut self, path: &mut Vec<i64>) -> io::Result<()> {
        let byte = self.byte()?;
        let len = match u64::from(byte >> 4) {
            15 => self.number()?,
            len => len,
        };
        // Each element takes a byte at least, so that the end of the file ends this.
        for _ in 0..len {
            path.push(0);
            match byte & 0xf {
                kind::TRUE | kind::FALSE => self.byte().map(drop)?,
                kind => self.value(kind, path)?,
            }
            path.pop();
        }
        Ok(())
    }

    /// Keeps what is wanted of the numbers.
    fn take_note(&mut self, path: &[i64], number: i64) -> io::Result<()> {
        let header = &mut self.header;
        if let [field @ 1..=3] = path {
            self.seen |= 1 << field;
        }
        let place = match path {
            [2] => &mut header.unpacked,
            [3] => &mut header.packed,
            [8, 5 | 6] => {
                let more = u64::try_from(number).map_err(|_| wrong("of negative length"))?;
                header.levels += more;
                return Ok(());
            }
            [8, 7] => {
                header.plain = number == 0;
                return Ok(());
            }
            _ => return Ok(()),
        };
        *place = u64::try_from(number).map_err(|_| wrong("of negative length"))?;
        Ok(())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        self.read += 1;
        Ok(byte[0])
    }

    /// A number of 32 or 64 bits, 7 of them a byte.
    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift.min(63);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(wrong("no number"))
    }

    fn skip(&mut self, len: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.bytes.by_ref().take(len), &mut io::sink())?;
        self.read += skipped;
        if skipped < len { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// The sign is in the lowest bit.
fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_a_header() {
        // Kind 0, 300 bytes unpacked, 5 in the file; in the header of a data page, a statistic of 2 bytes.
        let bytes = [0x15, 0, 0x15, 0xd8, 4, 0x15, 10, 0x2c, 0x15, 2, 0x4c, 0x18, 2, 7, 7, 0, 0, 0, 99];
        let wanted = Header { len: 18, unpacked: 300, packed: 5, ..Header::default() };
        assert_eq!(read(&bytes[..]).unwrap(), wanted);
        for end in 0..18 {
            assert!(read(&bytes[..end]).is_err(), "{end}");
        }
        // Of the second version: 3 and 4 bytes of levels, then what is not compressed.
        let v2 = [0x15, 6, 0x15, 40, 0x15, 40, 0x5c, 0x55, 6, 0x15, 8, 0x12, 0, 0];
        let wanted = Header { len: 14, unpacked: 20, packed: 20, levels: 7, plain: true };
        assert_eq!(read(&v2[..]).unwrap(), wanted);
    }

    #[test]
    fn depth_is_limited_for_lists_and_structures_alike() {
        for byte in [0x19, 0x1c, 0x1a] {
            let error = read(&vec![byte; 1 << 20][..]).unwrap_err();
            assert!(error.to_string().contains("too deep"), "{byte:#x}: {error}");
        }
        // Lists of one structure that holds such a list again.
        let both: Vec<u8> = [0x19, 0x1c].repeat(1 << 19);
        assert!(read(&both[..]).unwrap_err().to_string().contains("too deep"));
    }

    #[test]
    fn what_has_two_meanings_is_refused() {
        // The size unpacked once more, by its full number; a negative size; a binary longer than the file; no sizes.
        for bytes in [
            &[0x15, 0, 0x15, 0xd8, 4, 0x15, 10, 0x05, 4, 0xff, 0xff, 3, 0][..],
            &[0x15, 0, 0x15, 1, 0x15, 10, 0],
            &[0x15, 0, 0x15, 2, 0x15, 10, 0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0],
            &[0x15, 0, 0],
            b"PAR1",
            &[0xff; 40],
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
