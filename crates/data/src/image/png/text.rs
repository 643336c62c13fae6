//! Texts in a PNG file that hold what other formats have places for: EXIF as ImageMagick writes it, and XMP.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;

/// Unpacked texts with more bytes are left alone, as Pillow does.
const MOST: u64 = 1 << 20;
const PROFILE: &[u8] = b"Raw profile type exif";
const XMP: &[u8] = b"XML:com.adobe.xmp";

/// Such texts, the last of each kind, still packed.
#[derive(Default)]
pub(super) struct Texts<'a> {
    profile: Option<Text<'a>>,
    xmp: Option<Text<'a>>,
}

#[derive(Clone, Copy)]
struct Text<'a> {
    bytes: &'a [u8],
    packed: bool,
}

impl<'a> Texts<'a> {
    /// Takes note of a chunk of text.
    pub(super) fn take(&mut self, kind: &[u8], body: &'a [u8]) {
        let named = |name: &[u8]| body.strip_prefix(name)?.strip_prefix(b"\0");
        if let Some(rest) = named(PROFILE) {
            self.profile = text(kind, rest).or(self.profile);
        } else if let Some(rest) = named(XMP) {
            self.xmp = text(kind, rest).or(self.xmp);
        }
    }

    /// The EXIF block that is written out as a text: three lines of head, then hexadecimal digits.
    pub(super) fn exif(&self) -> Option<Vec<u8>> {
        let text = self.profile?.unpacked()?;
        let lines = text.split(|byte| *byte == b'\n').skip(3);
        let digits: Vec<u8> = lines.flatten().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let value = |digit: u8| char::from(digit).to_digit(16);
        digits.chunks_exact(2).map(|pair| u8::try_from(value(pair[0])? << 4 | value(pair[1])?).ok()).collect()
    }

    /// The XMP.
    pub(super) fn xmp(&self) -> Option<Cow<'a, [u8]>> {
        self.xmp?.unpacked()
    }
}

/// The text of a chunk, from behind its keyword (PNG specification, 11.3.4).
fn text<'a>(kind: &[u8], rest: &'a [u8]) -> Option<Text<'a>> {
    match kind {
        b"tEXt" => Some(Text { bytes: rest, packed: false }),
        b"zTXt" => Some(Text { bytes: rest.strip_prefix(b"\0")?, packed: true }),
        b"iTXt" => {
            let ([packed, 0], rest) = rest.split_first_chunk()? else { return None };
            // Language and translated keyword.
            let mut parts = rest.splitn(3, |byte| *byte == 0);
            Some(Text { bytes: parts.nth(2)?, packed: *packed == 1 })
        }
        _ => None,
    }
}

impl<'a> Text<'a> {
    fn unpacked(self) -> Option<Cow<'a, [u8]>> {
        if !self.packed {
            return Some(self.bytes.into());
        }
        let mut text = Vec::new();
        ZlibDecoder::new(self.bytes).take(MOST + 1).read_to_end(&mut text).ok()?;
        (text.len() as u64 <= MOST).then(|| text.into())
    }
}
