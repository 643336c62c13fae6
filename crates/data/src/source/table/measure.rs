//! Where records end, found without holding them.

use std::io::{self, BufRead, BufReader, Read};

use csv_core::{ReadRecordResult, Reader};

use super::bounded::too_long;

/// Records at the beginning of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    /// How many.
    pub(super) records: usize,
    /// Bytes of all of them; a `\r\n` behind the last is counted to its `\r`.
    pub(super) bytes: u64,
    /// Line ends in these.
    pub(super) lines: u64,
}

/// Measures the first `most` records of `text`, or as many as it has.
///
/// # Errors
/// If it cannot be read, or the records have more than `limit` bytes.
pub(super) fn measure(mut parser: Reader, text: impl Read, most: usize, limit: u64) -> io::Result<Measured> {
    let (mut text, mut measured) = (BufReader::with_capacity(1 << 16, text), Measured::default());
    let (mut fields, mut ends) = (vec![0; 1 << 16], [0; 256]);
    let first = parser.line();
    while measured.records < most {
        let (found, read, ..) = parser.read_record(text.fill_buf()?, &mut fields, &mut ends);
        text.consume(read);
        measured.bytes += read as u64;
        match found {
            ReadRecordResult::Record => measured.records += 1,
            ReadRecordResult::End => break,
            // What has been read of the record is not wanted.
            _ if measured.bytes > limit => return Err(too_long(limit)),
            _ => {}
        }
    }
    measured.lines = parser.line() - first;
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_measured_whatever_their_length() {
        let of = |text: &str, most, limit| measure(Reader::new(), text.as_bytes(), most, limit);
        let long = format!("\"{}\n\",b\r\nc,d\n", "x".repeat(1 << 20));
        let bytes = (1 << 20) + 6;
        assert_eq!(of(&long, 1, 1 << 21).unwrap(), Measured { records: 1, bytes, lines: 1 });
        assert_eq!(of(&long, 9, 1 << 21).unwrap().records, 2);
        assert!(of(&long, 1, 1 << 19).is_err());
        assert_eq!(of("", 1, 9).unwrap(), Measured::default());
        assert_eq!(of(&format!("a{}", ",".repeat(1000)), 1, 9999).unwrap().records, 1);
    }
}
