//! Reads a vocabulary file: UTF-8, with or without a byte order mark, lines ended by LF or CRLF.
//!
//! One character a line; or, if the file has a single line, all the characters on it. Order is id order.
use std::collections::HashMap;
use std::path::Path;

use super::TokenizerError;
use crate::source::stand_in;

/// More than every Unicode character on a line of its own, ended by CRLF.
const MAX_BYTES: u64 = 8 << 20;
/// How much of a wrong line is shown.
const SHOWN: usize = 20;

/// The characters of the file at `path`, in order.
pub(super) fn read(path: &Path) -> Result<Vec<char>, TokenizerError> {
    let failed = |source| TokenizerError::Read { path: path.to_owned(), source };
    let about = std::fs::metadata(path).map_err(failed)?;
    // A device has no length, and no end.
    if !about.is_file() {
        return Err(failed(std::io::Error::other("it is not a file")));
    }
    let bytes = about.len();
    if bytes > MAX_BYTES {
        return Err(TokenizerError::TooLarge { path: path.to_owned(), bytes });
    }
    let (bytes, place) = (std::fs::read(path).map_err(failed)?, path.display().to_string());
    parse(&bytes, &place).map_err(|wrong| match stand_in(&bytes) {
        Some(found) => TokenizerError::StandIn { place, found },
        None => wrong,
    })
}

/// The characters of the file content `bytes`; `place` names it in errors.
pub(super) fn parse(bytes: &[u8], place: &str) -> Result<Vec<char>, TokenizerError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| TokenizerError::NotUtf8 { place: place.to_owned(), offset: e.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.is_empty() {
        return Err(TokenizerError::Empty { place: place.to_owned() });
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.contains('\n') {
        let chars = text.split('\n').enumerate().map(|(i, line)| one(line, i + 1, place));
        let chars = chars.collect::<Result<Vec<_>, _>>()?;
        distinct(&chars, place, "line")?;
        return Ok(chars);
    }
    let chars: Vec<char> = without_cr(text).chars().collect();
    if chars.is_empty() {
        return Err(TokenizerError::EmptyLine { place: place.to_owned(), line: 1 });
    }
    distinct(&chars, place, "character")?;
    Ok(chars)
}

fn without_cr(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// The one character of `line`, which is number `number`.
fn one(line: &str, number: usize, place: &str) -> Result<char, TokenizerError> {
    let line = without_cr(line);
    let mut chars = line.chars();
    match (chars.next(), chars.next()) {
        (Some(character), None) => Ok(character),
        (None, _) => Err(TokenizerError::EmptyLine { place: place.to_owned(), line: number }),
        _ => Err(TokenizerError::LongLine {
            place: place.to_owned(),
            line: number,
            text: line.chars().take(SHOWN).collect(),
            count: line.chars().count(),
        }),
    }
}

/// Refuses a character that comes twice; `unit` is what a place in the list is called.
pub(super) fn distinct(chars: &[char], place: &str, unit: &str) -> Result<(), TokenizerError> {
    let mut seen = HashMap::with_capacity(chars.len());
    for (i, &character) in chars.iter().enumerate() {
        if let Some(first) = seen.insert(character, i) {
            return Err(TokenizerError::Duplicate {
                place: place.to_owned(),
                character,
                first: format!("{unit} {}", first + 1),
                again: format!("{unit} {}", i + 1),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chars(bytes: &[u8]) -> String {
        parse(bytes, "v.txt").unwrap().into_iter().collect()
    }

    fn error(bytes: &[u8]) -> String {
        parse(bytes, "v.txt").unwrap_err().to_string()
    }

    #[test]
    fn line_endings_marks_and_spaces() {
        assert_eq!(chars(b"b\na\n \n"), "ba ");
        assert_eq!(chars(b"b\na\n "), "ba ");
        assert_eq!(chars(b"b\r\n \r\na\r\n"), "b a");
        assert_eq!(chars("\u{feff}é\n😀\n\t\n".as_bytes()), "é😀\t");
        assert_eq!(chars(b"a"), "a");
    }

    #[test]
    fn all_on_one_line() {
        assert_eq!(chars(b"abc .,\"<>NA"), "abc .,\"<>NA");
        assert_eq!(chars(b" xyz\r\n"), " xyz");
        assert!(error(b"abca").contains("'a' stands at character 4 and already at character 1"));
    }

    #[test]
    fn errors_name_the_line() {
        assert!(error(b"a\n\nb\n").contains("v.txt, line 2: empty"));
        assert!(error(b"a\nb\n\n").contains("line 3: empty"));
        assert!(error(b"a\n<pad>\n").contains("line 2: \"<pad>\" has 5 characters"));
        assert!(error(b"a\nb\na\n").contains("'a' stands at line 3 and already at line 1"));
        assert!(error(b"").contains("no characters"));
        assert!(error(b"\n").contains("line 1: empty"));
        assert!(error(b"a\n\xff\n").contains("not UTF-8 from byte 2"));
    }

    #[test]
    fn what_stands_in_for_a_vocabulary_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vocab.txt");
        for (bytes, wanted) in [
            (&b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"[..], "git lfs pull"),
            (b"\xef\xbb\xbf\n<!DOCTYPE html><html>", "is a web page"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"\x89PNG\r\n", "is a PNG picture"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("vocab.txt") && error.contains(wanted), "{error}");
        }
        std::fs::write(&path, "BZh").unwrap();
        assert_eq!(read(&path).unwrap(), ['B', 'Z', 'h']);
    }

    #[test]
    fn a_missing_or_a_huge_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vocab.txt");
        assert!(read(&path).unwrap_err().to_string().contains("vocab.txt"));
        std::fs::File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(matches!(read(&path), Err(TokenizerError::TooLarge { .. })));
    }
}
