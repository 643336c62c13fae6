//! Words in messages.

/// A number with its noun: `1 row`, `2 rows`.
pub fn count(n: impl TryInto<u64>, noun: &str) -> String {
    match n.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// The beginning of text as a file has it, up to `most` bytes, for a message: what can be printed stands as it is, marks and
/// backslashes too; control characters and bytes that are no UTF-8 are escaped. No character is cut.
pub(crate) fn printable(text: &[u8], most: usize) -> String {
    let mut shown = String::new();
    let mut left = most;
    for chunk in text[..text.len().min(most + 3)].utf8_chunks() {
        let valid = chunk.valid();
        let part = &valid[..valid.floor_char_boundary(left)];
        for c in part.chars() {
            match u8::try_from(c) {
                Ok(byte) if byte.is_ascii_control() => shown.extend(byte.escape_ascii().map(char::from)),
                _ if c.is_control() || is_unseen(c) => shown.extend(c.escape_unicode()),
                _ => shown.push(c),
            }
        }
        left -= part.len();
        if part.len() < valid.len() || chunk.invalid().len() > left {
            break;
        }
        shown.extend(chunk.invalid().escape_ascii().map(char::from));
        left -= chunk.invalid().len();
    }
    shown
}

/// Bytes that are no text, for a message: what is printed in ASCII stands as it is, all else is escaped byte by byte.
pub(crate) fn printable_bytes(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let shown =
        |byte: &u8| if plain(byte) { char::from(*byte).into() } else { byte.escape_ascii().to_string() };
    bytes.iter().map(shown).collect()
}

/// Marks of no width, and those that turn the direction of the text behind them.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{count, printable, printable_bytes};

    #[test]
    fn text_is_shown_as_it_stands() {
        for (text, shown) in [
            (&br#"{"a": 'b\u00e9"#[..], r#"{"a": 'b\u00e9"#),
            ("caf\u{e9} \u{1f600}".as_bytes(), "caf\u{e9} \u{1f600}"),
            (b"a\tb\r\n\0\x1b[1m", r"a\tb\r\n\x00\x1b[1m"),
            ("a\u{202e}b".as_bytes(), r"a\u{202e}b"),
            (b"caf\xe9 x\xff", r"caf\xe9 x\xff"),
            (b"", ""),
        ] {
            assert_eq!(printable(text, 40), shown);
        }
        assert_eq!(printable_bytes("\u{e9}\"\\ \t".as_bytes()), r#"\xc3\xa9"\ \t"#);
        let long = "caf\u{e9}";
        assert_eq!([3, 4, 5].map(|most| printable(long.as_bytes(), most)), ["caf", "caf", long]);
        assert_eq!(printable(b"ab\xe9c", 2), "ab");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0_u64, 1, 2].map(|n| count(n, "row")), ["0 rows", "1 row", "2 rows"]);
    }
}
