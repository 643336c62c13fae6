//! Text in the encodings that tables and caption files come in.
//!
//! Invariant: nothing is replaced in silence; bytes that are no text in the encoding are an error that says
//! where and what they are.

use std::borrow::Cow;

use encoding_rs::{DecoderResult, UTF_8};

use super::names;
use crate::text::printable_bytes;

/// A text encoding, as named by `data_config.encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    inner: &'static encoding_rs::Encoding,
    name: &'static str,
    /// Bytes from 128 up to this one are no text: US-ASCII has none of them, and the standards that windows' code pages
    /// extend have control codes in the place of the windows characters. Less than 128: all are as `inner` says.
    no_text_to: u8,
}

/// Bytes that are no text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// How many bytes before them were text.
    pub(crate) at: usize,
    /// The bytes, escaped.
    pub(crate) found: String,
}

impl Malformed {
    fn at(bytes: &[u8], at: usize) -> Self {
        let bytes = &bytes[at.min(bytes.len())..];
        Self { at, found: printable_bytes(&bytes[..bytes.len().min(8)]) }
    }
}

impl Default for Encoding {
    fn default() -> Self {
        Self::UTF_8
    }
}

impl Encoding {
    /// UTF-8, with or without a mark.
    pub const UTF_8: Self = Self { inner: UTF_8, name: "UTF-8", no_text_to: 0 };

    /// The encoding that a name of the web or of Python's stands for: `utf-8`, `latin-1`, `cp1252`, `shift_jis`, ...
    ///
    /// # Errors
    /// If there is no such encoding; the message says so, and what is near.
    pub fn named(label: &str) -> Result<Self, String> {
        names::find(label)
    }

    pub(super) fn web(inner: &'static encoding_rs::Encoding) -> Self {
        Self { inner, name: inner.name(), no_text_to: 0 }
    }

    /// `inner`, without the bytes from 128 to `no_text_to`.
    pub(super) fn strict(inner: &'static encoding_rs::Encoding, name: &'static str, no_text_to: u8) -> Self {
        Self { inner, name, no_text_to }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.name
    }

    pub(crate) fn inner(self) -> &'static encoding_rs::Encoding {
        self.inner
    }

    /// The place of the first byte that `inner` takes for text and this encoding does not.
    pub(crate) fn no_text(self, bytes: &[u8]) -> Option<usize> {
        (self.no_text_to >= 128).then(|| bytes.iter().position(|b| (128..=self.no_text_to).contains(b)))?
    }

    /// True if bytes of the ASCII range always stand for themselves, so that fields can be found before text is
    /// decoded. In the encodings of East Asia a second byte may look like a letter or a bar, but never like a
    /// comma, a quotation mark or a line end.
    pub(crate) fn keeps_ascii(self, delimiter: u8) -> bool {
        let second_byte = matches!(delimiter, 0x30..=0x39 | 0x40..=0x7e) && !self.inner.is_single_byte();
        self.inner == UTF_8 || (self.inner.is_ascii_compatible() && !second_byte)
    }

    /// The text of `bytes`.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, Malformed> {
        if let Some(at) = self.no_text(bytes) {
            return Err(Malformed::at(bytes, at));
        }
        match self.inner.decode_without_bom_handling_and_without_replacement(bytes) {
            Some(text) => Ok(text),
            None => Err(self.malformed(bytes)),
        }
    }

    /// The text of `bytes`, which are a whole file: a mark at their start is taken off, and names the byte order.
    pub(crate) fn decode_marked(self, bytes: &[u8]) -> Result<Cow<'_, str>, Malformed> {
        match encoding_rs::Encoding::for_bom(bytes) {
            Some((marked, mark))
                if marked == self.inner || self.is_utf_16() && Self::web(marked).is_utf_16() =>
            {
                Self::web(marked).decode(&bytes[mark..])
            }
            _ => self.decode(bytes),
        }
    }

    /// True for both byte orders.
    pub(crate) fn is_utf_16(self) -> bool {
        self.name().starts_with("UTF-16")
    }

    /// Finds what [`decode`](Self::decode) stumbled over.
    fn malformed(self, bytes: &[u8]) -> Malformed {
        let mut decoder = self.inner.new_decoder_without_bom_handling();
        let mut out = String::with_capacity(bytes.len() * 3 + 16);
        let at = match decoder.decode_to_string_without_replacement(bytes, &mut out, true) {
            (DecoderResult::Malformed(bad, after), read) => {
                read.saturating_sub(usize::from(bad) + usize::from(after))
            }
            (_, read) => read,
        };
        Malformed::at(bytes, at)
    }

    /// True if bytes of another encoding are seldom malformed in it, see [`Guess`].
    fn takes_almost_anything(self) -> bool {
        self.inner != UTF_8 && self.inner.is_ascii_compatible()
    }
}

/// Watches texts for signs that they are UTF-8 although another encoding was named: almost any bytes are text
/// in windows-1252 or gbk, and the captions would be learnt garbled.
#[derive(Debug)]
pub(crate) struct Guess {
    doubtful: bool,
    /// Characters of several bytes, well-formed in UTF-8.
    utf8: usize,
    /// Line of the first of them.
    first: Option<u64>,
}

/// So many well-formed sequences and not one other do not come about by chance.
const SURE: usize = 4;

impl Guess {
    pub(crate) fn new(encoding: Encoding) -> Self {
        Self { doubtful: encoding.takes_almost_anything(), utf8: 0, first: None }
    }

    /// Looks at the bytes of a text that begins on `line`.
    pub(crate) fn look(&mut self, bytes: &[u8], line: u64) {
        if !self.doubtful || bytes.is_ascii() {
            return;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                self.utf8 += text.chars().filter(|c| !c.is_ascii()).count();
                self.first.get_or_insert(line);
            }
            Err(_) => self.doubtful = false,
        }
    }

    /// The line of the first text, if all of them are UTF-8.
    pub(crate) fn utf8_since(&self) -> Option<u64> {
        self.first.filter(|_| self.doubtful && self.utf8 >= SURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_bytes_are_named_with_their_place() {
        let sjis = Encoding::named("shift_jis").unwrap();
        assert_eq!(sjis.decode(b"a\x83\x65\x83\x58").unwrap(), "a\u{30c6}\u{30b9}");
        assert_eq!(sjis.decode(b"ab\x83\x20c"), Err(Malformed { at: 2, found: "\\x83 c".into() }));
        assert_eq!(Encoding::UTF_8.decode(b"caf\xe9 x").unwrap_err().at, 3);
        assert_eq!(Encoding::named("latin1").unwrap().decode(b"caf\xe9").unwrap(), "caf\u{e9}");
    }

    /// Where windows has quotation marks, ISO-8859-1 has control codes, which no caption has.
    #[test]
    fn standards_are_not_read_as_what_extends_them() {
        let of = |label, bytes: &'static [u8]| {
            let decoded = Encoding::named(label).unwrap().decode(bytes);
            decoded.map(Cow::into_owned).map_err(|bad| (bad.at, bad.found))
        };
        assert_eq!(of("ascii", b"cafe"), Ok("cafe".into()));
        assert_eq!(of("ascii", b"caf\xe9"), Err((3, "\\xe9".into())));
        assert_eq!(of("latin-1", b"\x93a\x94"), Err((0, "\\x93a\\x94".into())));
        assert_eq!(of("cp1252", b"\x93a\x94"), Ok("\u{201c}a\u{201d}".into()));
        assert_eq!(of("iso-8859-9", b"\xfd"), Ok("\u{131}".into()));
        assert_eq!(of("utf-8", "\u{e9}".as_bytes()), Ok("\u{e9}".into()));
    }

    #[test]
    fn only_safe_delimiters_are_looked_for_in_bytes() {
        let of = |label, delimiter| Encoding::named(label).unwrap().keeps_ascii(delimiter);
        assert!(of("utf-8", b'|') && of("windows-1252", b'|') && of("gbk", b',') && of("shift_jis", b'\t'));
        assert!(!of("gbk", b'|') && !of("utf-16le", b',') && !of("iso-2022-jp", b','));
    }

    #[test]
    fn utf_8_under_another_name_is_noticed() {
        let of = |label, texts: &[&[u8]]| {
            let mut guess = Guess::new(Encoding::named(label).unwrap());
            texts.iter().zip(2..).for_each(|(text, line)| guess.look(text, line));
            guess.utf8_since()
        };
        let accents = "\u{e9}\u{e8}\u{ea}".as_bytes();
        assert_eq!(of("latin1", &[b"plain", accents, accents]), Some(3));
        assert_eq!(of("gbk", &[accents, accents]), Some(2));
        assert_eq!(of("latin1", &[accents, accents, b"caf\xe9"]), None);
        assert_eq!(of("latin1", &["\u{e9}".as_bytes()]), None);
        assert_eq!(of("utf-8", &[accents, accents]), None);
    }
}
