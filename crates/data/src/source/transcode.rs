//! Text files whose encoding hides commas and line ends (UTF-16 above all), or whose delimiter is no single byte, are
//! copied once, as UTF-8, to an unnamed temporary file: memory stays bounded, and the copy goes with the process.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use encoding_rs::{Decoder, DecoderResult};

use super::delimiter::Delimiter;
use super::encoding::Encoding;
use super::{SourceError, positioned};
use crate::text::printable_bytes;

/// Bytes read at a time.
const CHUNK: usize = 1 << 16;

/// The file's text in UTF-8, with `delimiter` replaced by its stand-in if it has one.
///
/// # Errors
/// If the file cannot be read, its bytes are no text in `encoding` (with line and bytes), or there is no room.
pub(super) fn to_utf8(
    path: &Path,
    file: &File,
    encoding: Encoding,
    delimiter: Delimiter,
) -> Result<File, SourceError> {
    refuse_plain(path, file, encoding)?;
    let copy = tempfile::tempfile().map_err(|e| no_room(path, &e))?;
    let mut pass = Pass { path, encoding, delimiter, out: BufWriter::new(copy), line: 1 };
    let mut decoder = if encoding.is_utf_16() {
        // A mark names the byte order.
        encoding.inner().new_decoder()
    } else {
        encoding.inner().new_decoder_with_bom_removal()
    };
    (&*file).seek(SeekFrom::Start(0)).map_err(|e| SourceError::io(path, e))?;
    let mut bytes = vec![0; CHUNK];
    loop {
        let read = (&*file).read(&mut bytes).map_err(|e| SourceError::io(path, e))?;
        pass.convert(&mut decoder, &bytes[..read], read == 0)?;
        if read == 0 {
            return pass.out.into_inner().map_err(|e| no_room(path, e.error()));
        }
    }
}

struct Pass<'a> {
    path: &'a Path,
    encoding: Encoding,
    delimiter: Delimiter,
    out: BufWriter<File>,
    /// Line that is being read, from 1.
    line: u64,
}

impl Pass<'_> {
    fn convert(&mut self, decoder: &mut Decoder, bytes: &[u8], last: bool) -> Result<(), SourceError> {
        match self.encoding.no_text(bytes) {
            None => self.decode(decoder, bytes, last),
            Some(at) => {
                self.decode(decoder, &bytes[..at], false)?;
                Err(self.malformed(&bytes[at..]))
            }
        }
    }

    fn decode(&mut self, decoder: &mut Decoder, mut bytes: &[u8], last: bool) -> Result<(), SourceError> {
        let mut text = String::with_capacity(3 * CHUNK + 16);
        loop {
            text.clear();
            let (result, read) = decoder.decode_to_string_without_replacement(bytes, &mut text, last);
            self.line += text.bytes().filter(|b| *b == b'\n').count() as u64;
            let swapped = self.delimiter.swap(text.as_str().into());
            self.out.write_all(swapped.as_bytes()).map_err(|e| no_room(self.path, &e))?;
            match result {
                DecoderResult::InputEmpty => return Ok(()),
                DecoderResult::OutputFull => bytes = &bytes[read..],
                DecoderResult::Malformed(bad, after) => {
                    let from = read.saturating_sub(usize::from(bad) + usize::from(after));
                    return Err(self.malformed(&bytes[from..]));
                }
            }
        }
    }

    /// `bytes`: what was found, nothing at the end of the file.
    fn malformed(&self, bytes: &[u8]) -> SourceError {
        let (found, name) = (printable_bytes(&bytes[..bytes.len().min(8)]), self.encoding.name());
        let found = if bytes.is_empty() {
            format!("line {}: the file ends within a character of {name}, so it seems cut", self.line)
        } else {
            format!("line {}: `{found}` is no text in {name} (data_config.encoding)", self.line)
        };
        SourceError::not_usable(self.path, found)
    }
}

/// Every text in ASCII has an even number of bytes sometimes, and would be read as nonsense.
fn refuse_plain(path: &Path, file: &File, encoding: Encoding) -> Result<(), SourceError> {
    let mut head = [0; 512];
    let read = positioned::read_at(file, &mut head, 0).map_err(|e| SourceError::io(path, e))?;
    if encoding.is_utf_16() && !head[..read].contains(&0) {
        let found = format!("is not {} (data_config.encoding): no byte 0 near its start", encoding.name());
        return Err(SourceError::not_usable(path, found));
    }
    Ok(())
}

fn no_room(path: &Path, error: &std::io::Error) -> SourceError {
    let found = format!(
        "is copied as UTF-8 to a temporary file in {}, and that failed: {error}. Set TMPDIR to a folder with \
         room, or save the file as UTF-8",
        std::env::temp_dir().display()
    );
    SourceError::not_usable(path, found)
}
