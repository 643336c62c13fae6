//! What stands between the fields of a table: any character but those that mean something else there.
//!
//! The parser knows bytes alone. A character of several bytes changes places with a control character that tables do
//! not have ([`swap`](Delimiter::swap)) in a copy of the file, and back in the text of the fields: nothing is lost
//! even if the file has that character.

use std::borrow::Cow;

/// Stands for a delimiter of several bytes: the unit separator.
const STAND_IN: char = '\u{1f}';

/// One character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiter(char);

impl Delimiter {
    /// As in CSV.
    pub const COMMA: Self = Self(',');
    /// As in TSV.
    pub const TAB: Self = Self('\t');

    /// The delimiter that `text` is: one character, or an escape for one (`\t`, `\x01`, `\u0001`).
    ///
    /// # Errors
    /// If it is none, or one that cannot divide fields: quotation mark, line ends, the byte 0, a byte order mark.
    pub fn named(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("delimiter {text:?} cannot divide fields: {why}"));
        let Some(c) = single(text).or_else(|| escaped(text)) else {
            return wrong("one character is wanted, or \\t, \\x01, \\u0001 for one that is hard to write");
        };
        match c {
            '"' => wrong("it quotes them"),
            '\r' | '\n' => wrong("it ends a record"),
            '\0' => wrong("a file with a byte 0 is no text"),
            '\u{feff}' => wrong("it is the mark at the start of a file"),
            c => Ok(Self(c)),
        }
    }

    /// The character.
    pub(crate) fn char(self) -> char {
        self.0
    }

    /// The byte that the parser is told of.
    pub(crate) fn byte(self) -> u8 {
        u8::try_from(self.0).ok().filter(u8::is_ascii).unwrap_or(STAND_IN as u8)
    }

    /// True if the file must be copied with [`swap`](Self::swap) before it is parsed.
    pub(crate) fn is_swapped(self) -> bool {
        !self.0.is_ascii()
    }

    /// The text with delimiter and stand-in in each other's place, if they change places: so it is its own inverse.
    pub(crate) fn swap<'a>(self, text: Cow<'a, str>) -> Cow<'a, str> {
        if !self.is_swapped() || !text.contains([self.0, STAND_IN]) {
            return text;
        }
        let swapped = |c: char| match c {
            c if c == self.0 => STAND_IN,
            STAND_IN => self.0,
            c => c,
        };
        text.chars().map(swapped).collect::<String>().into()
    }
}

fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// `\t`, `\xHH`, `\uHHHH`, `\UHHHHHHHH`, `\u{H}`, and octal as shells have it: `\001`.
fn escaped(text: &str) -> Option<char> {
    let rest = text.strip_prefix('\\')?;
    let hexadecimal = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)).flatten()
    };
    match (rest.split_at_checked(1)?, rest.len()) {
        (("t", ""), _) => Some('\t'),
        (("n", ""), _) => Some('\n'),
        (("r", ""), _) => Some('\r'),
        (("x", digits), 3) | (("u", digits), 5) | (("U", digits), 9) => hexadecimal(digits),
        (("u", digits), _) => hexadecimal(digits.strip_prefix('{')?.strip_suffix('}')?),
        _ if rest.len() <= 3 && rest.bytes().all(|b| (b'0'..=b'7').contains(&b)) => {
            u32::from_str_radix(rest, 8).ok().and_then(char::from_u32)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_character_or_an_escape() {
        for (text, c) in [
            (",", ','),
            ("\t", '\t'),
            ("\\t", '\t'),
            ("\u{1}", '\u{1}'),
            ("\\x01", '\u{1}'),
            ("\\u0001", '\u{1}'),
            ("\\u{1}", '\u{1}'),
            ("\\001", '\u{1}'),
            ("\\1", '\u{1}'),
            ("\\xa7", '\u{a7}'),
            ("\\U0001F431", '\u{1f431}'),
            ("\u{a7}", '\u{a7}'),
            ("a", 'a'),
            ("7", '7'),
            (" ", ' '),
            ("\\", '\\'),
            ("'", '\''),
        ] {
            assert_eq!(Delimiter::named(text).map(Delimiter::char), Ok(c), "{text}");
        }
        for text in
            ["", "ab", "\\q", "\\x1", "\\x+1", "\\ud800", "\\u{}", "\"", "\n", "\\n", "\\x22", "\\r", "\\0"]
        {
            assert!(Delimiter::named(text).unwrap_err().contains("cannot divide fields"), "{text}");
        }
    }

    #[test]
    fn swapping_twice_changes_nothing() {
        let delimiter = Delimiter::named("\u{a7}").unwrap();
        let text = "a\u{a7}b\u{1f}c";
        let swapped = delimiter.swap(text.into());
        assert_eq!(swapped, "a\u{1f}b\u{a7}c");
        assert_eq!(delimiter.swap(swapped), text);
        assert_eq!(Delimiter::COMMA.swap("a\u{1f},".into()), "a\u{1f},");
        assert_eq!((delimiter.byte(), Delimiter::TAB.byte()), (0x1f, b'\t'));
    }
}
