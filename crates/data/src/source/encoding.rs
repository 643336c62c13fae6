//! Text in the encodings that tables and caption files come in.
//!
//! Invariant: nothing is replaced in silence; bytes that are no text in the encoding are an error that says
//! where and what they are.

use std::borrow::Cow;

use encoding_rs::{DecoderResult, UTF_8};

/// A text encoding, as named by `data_config.encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

/// Bytes that are no text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// How many bytes before them were text.
    pub(crate) at: usize,
    /// The bytes, escaped.
    pub(crate) found: String,
}

impl Default for Encoding {
    fn default() -> Self {
        Self::UTF_8
    }
}

impl Encoding {
    /// UTF-8, with or without a mark.
    pub const UTF_8: Self = Self(UTF_8);

    /// The encoding that a label of the web names: `utf-8`, `latin1`, `windows-1252`, `shift_jis`, `gbk`, ...
    ///
    /// # Errors
    /// If there is no such encoding; the message says so.
    pub fn named(label: &str) -> Result<Self, String> {
        match encoding_rs::Encoding::for_label(label.trim().as_bytes()) {
            Some(encoding) if encoding != encoding_rs::REPLACEMENT => Ok(Self(encoding)),
            _ => Err(format!(
                "data_config.encoding={label}: there is no such encoding here; usual ones are utf-8, utf-16le, \
                 windows-1252, iso-8859-2, shift_jis, euc-jp, gbk, gb18030, big5 and euc-kr"
            )),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    pub(crate) fn inner(self) -> &'static encoding_rs::Encoding {
        self.0
    }

    /// True if bytes of the ASCII range always stand for themselves, so that fields can be found before text is
    /// decoded. In the encodings of East Asia a second byte may look like a letter or a bar, but never like a
    /// comma, a quotation mark or a line end.
    pub(crate) fn keeps_ascii(self, delimiter: u8) -> bool {
        let second_byte = matches!(delimiter, 0x30..=0x39 | 0x40..=0x7e) && !self.0.is_single_byte();
        self.0 == UTF_8 || (self.0.is_ascii_compatible() && !second_byte)
    }

    /// The text of `bytes`.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, Malformed> {
        match self.0.decode_without_bom_handling_and_without_replacement(bytes) {
            Some(text) => Ok(text),
            None => Err(self.malformed(bytes)),
        }
    }

    /// The text of `bytes`, which are a whole file: a mark at their start is taken off, and names the byte order.
    pub(crate) fn decode_marked(self, bytes: &[u8]) -> Result<Cow<'_, str>, Malformed> {
        match encoding_rs::Encoding::for_bom(bytes) {
            Some((marked, mark)) if marked == self.0 || self.is_utf_16() && Self(marked).is_utf_16() => {
                Self(marked).decode(&bytes[mark..])
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
        let mut decoder = self.0.new_decoder_without_bom_handling();
        let mut out = String::with_capacity(bytes.len() * 3 + 16);
        let at = match decoder.decode_to_string_without_replacement(bytes, &mut out, true) {
            (DecoderResult::Malformed(bad, after), read) => {
                read.saturating_sub(usize::from(bad) + usize::from(after))
            }
            (_, read) => read,
        };
        let found = bytes[at.min(bytes.len())..].iter().take(8).copied().collect::<Vec<_>>();
        Malformed { at, found: found.escape_ascii().to_string() }
    }

    /// True if bytes of another encoding are seldom malformed in it, see [`Guess`].
    fn takes_almost_anything(self) -> bool {
        self.0 != UTF_8 && self.0.is_ascii_compatible()
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
    fn names_are_those_of_the_web() {
        for (label, name) in [
            ("utf-8", "UTF-8"),
            ("UTF8", "UTF-8"),
            ("utf-16le", "UTF-16LE"),
            ("latin1", "windows-1252"),
            ("Shift_JIS", "Shift_JIS"),
            ("gbk", "GBK"),
        ] {
            assert_eq!(Encoding::named(label).unwrap().name(), name);
        }
        for label in ["utf-7", "nonsense", "iso-2022-kr", ""] {
            assert!(Encoding::named(label).unwrap_err().contains("no such encoding"), "{label}");
        }
    }

    #[test]
    fn malformed_bytes_are_named_with_their_place() {
        let sjis = Encoding::named("shift_jis").unwrap();
        assert_eq!(sjis.decode(b"a\x83\x65\x83\x58").unwrap(), "a\u{30c6}\u{30b9}");
        assert_eq!(sjis.decode(b"ab\x83\x20c"), Err(Malformed { at: 2, found: "\\x83 c".into() }));
        assert_eq!(Encoding::UTF_8.decode(b"caf\xe9 x").unwrap_err().at, 3);
        assert_eq!(Encoding::named("latin1").unwrap().decode(b"caf\xe9").unwrap(), "caf\u{e9}");
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
