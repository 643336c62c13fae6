//! What a page may take once it is unpacked, checked before it is: a few bytes may claim, and fill, gigabytes.

use std::io::{self, Read};

use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};

use super::header::Header;
use crate::memory::{Lack, room};

/// Pages of up to this many bytes are unpacked whatever they are in the file: a thousand rows of drawings, or of one
/// photograph again and again, take so much.
const SMALL: u64 = 128 << 20;
/// Larger ones may grow by this much: pictures hardly shrink, and texts of that size by ten.
const GROWTH: u64 = 16;

/// Why a page is not unpacked: none of its rows can be read.
fn without_room(length: u64, lack: Lack) -> String {
    format!(
        "a page of {length} bytes: {lack}; all rows of a page are unpacked together, and a file written with a smaller \
         row_group_size, or write_batch_size and data_page_size, needs less"
    )
}

/// Refuses a page of `packed` bytes, its header left out, that would take too much memory.
pub(super) fn check(header: &Header, packed: &[u8], codec: Compression) -> Result<()> {
    if codec == Compression::UNCOMPRESSED || header.plain {
        return Ok(());
    }
    let (unpacked, length) = (header.unpacked, packed.len() as u64);
    if unpacked > SMALL.max(length.saturating_mul(GROWTH)) {
        let found = format!(
            "a page of {length} bytes would be {unpacked} bytes unpacked, more than {GROWTH} times as many and more than \
             {SMALL}, and is refused (with pyarrow, write_batch_size and data_page_size make pages smaller)"
        );
        return Err(ParquetError::General(found));
    }
    room(unpacked).map_err(|lack| ParquetError::General(without_room(length, lack)))?;
    let levels = usize::try_from(header.levels).unwrap_or(usize::MAX);
    let body = packed.get(levels..).unwrap_or_default();
    if longer(body, codec, unpacked.saturating_sub(header.levels)) {
        let found =
            format!("a page holds more than the {unpacked} bytes that it claims: is the file damaged?");
        return Err(ParquetError::General(found));
    }
    Ok(())
}

/// True if `body` unpacks to more than `claimed` bytes. Asked of the codecs that the parquet reader lets run to their end;
/// the others it stops there. What cannot be unpacked is no longer: the reader says so better.
fn longer(body: &[u8], codec: Compression, claimed: u64) -> bool {
    match codec {
        Compression::GZIP(_) => more(flate2::read::MultiGzDecoder::new(body), claimed),
        // A window of up to 1 GiB, which no writer of parquet asks for, has this mark.
        Compression::BROTLI(_) if body.first().is_some_and(|byte| byte & 0x7f == 0x11) => true,
        Compression::BROTLI(_) => more(brotli::Decompressor::new(body, 1 << 12), claimed),
        Compression::LZ4 => more(lz4_flex::frame::FrameDecoder::new(body), claimed),
        _ => false,
    }
}

fn more(unpacked: impl Read, claimed: u64) -> bool {
    let mut count = Count(0);
    // As much as came before an error was handed out, too.
    let _ = io::copy(&mut unpacked.take(claimed.saturating_add(1)), &mut count);
    count.0 > claimed
}

/// Counts bytes.
struct Count(u64);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn zeros(n: usize) -> Vec<u8> {
        vec![0; n]
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        brotli::CompressorWriter::new(&mut packed, 4096, 5, 22).write_all(bytes).unwrap();
        packed
    }

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    type Pack = fn(&[u8]) -> Vec<u8>;

    /// Every codec that would run on is stopped at what the header claims.
    #[test]
    fn pages_that_lie_are_refused() {
        let codecs: [(Compression, Pack); 3] = [
            (Compression::GZIP(Default::default()), gzip),
            (Compression::BROTLI(Default::default()), brotli),
            (Compression::LZ4, lz4),
        ];
        for (codec, pack) in codecs {
            let packed = pack(&zeros(100_000));
            let claims = |unpacked| check(&Header { unpacked, ..Header::default() }, &packed, codec);
            assert!(claims(100_000).is_ok(), "{codec:?}");
            assert!(claims(99_999).unwrap_err().to_string().contains("more than the 99999 bytes"));
            assert!(claims(SMALL + 1).unwrap_err().to_string().contains("and is refused"));
            let levels = [&[0, 0][..], &packed].concat();
            let header = Header { unpacked: 100_002, levels: 2, ..Header::default() };
            assert!(check(&header, &levels, codec).is_ok(), "{codec:?}");
        }
    }

    #[test]
    fn a_page_without_memory_brings_what_to_do() {
        let found = without_room(7, room(u64::MAX).unwrap_err());
        assert!(Lack::is_told(&found) && found.contains("row_group_size"), "{found}");
    }
}
