//! Records that a stray quotation mark took into one field: `"` at the start of a field goes on to the next single `"`, be it
//! rows behind. Told by what such a field holds: behind a line end, what only a record of its own would.

use csv::ByteRecord;

use super::Pictures;
use crate::source::base64;
use crate::text::printable;

/// No word of a caption has so many letters of base64; a picture has more.
const PICTURE: usize = 40;

/// A field that holds records.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Swallowed {
    /// Its number, from 0.
    pub(super) field: usize,
    /// The first record in it begins so many lines below the one that the field is of.
    pub(super) lines: u64,
    /// How it begins.
    pub(super) shown: String,
}

/// Looks for records within the fields of one.
pub(super) fn find(fields: &ByteRecord, pictures: Pictures, delimiter: u8) -> Option<Swallowed> {
    let mut before = 0;
    for (i, field) in fields.iter().enumerate() {
        if !field.iter().any(|b| matches!(b, b'\n' | b'\r')) {
            continue;
        }
        let mut lines = before;
        for (at, line) in field.split(|b| *b == b'\n').enumerate() {
            // Where lines end by `\r` alone, all of them are one here.
            let ends = if at == 0 { 1 } else { 0 };
            let mut parts = line.split(|b| *b == b'\r').skip(ends);
            if parts.any(|line| is_record(line, i, fields.len(), pictures, delimiter)) {
                let shown = printable(line, 24);
                return Some(Swallowed { field: i, lines, shown });
            }
            lines += 1;
        }
        before = lines - 1;
    }
    None
}

/// True if a line within the field number `field` can only be a record.
fn is_record(line: &[u8], field: usize, columns: usize, pictures: Pictures, delimiter: u8) -> bool {
    let parts: Vec<&[u8]> = line.split(|b| *b == delimiter).take(columns + 1).collect();
    let whole = parts.len() == columns;
    if !pictures.base64 {
        return whole && base64::names_a_file(parts[pictures.column]);
    }
    // Base64 may be broken into lines itself.
    (whole || field != pictures.column) && parts.into_iter().any(is_base64)
}

/// True if `text` can only be a picture in base64.
fn is_base64(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let letters =
        text.iter().take_while(|b| matches!(b, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/'));
    letters.count() >= PICTURE || text.get(..11).is_some_and(|head| head.eq_ignore_ascii_case(b"data:image/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: [&str; 2], base64: bool) -> Option<(usize, u64)> {
        let pictures = Pictures { column: 0, base64 };
        find(&ByteRecord::from(fields.to_vec()), pictures, b',').map(|found| (found.field, found.lines))
    }

    #[test]
    fn records_within_a_field_are_found() {
        let picture = "iVBORw0KGgo".repeat(8);
        for (caption, lines) in [
            (format!("a\n{picture},b"), Some((1, 1))),
            (format!("a\nb, c\r\n\"{picture}\",\"b"), Some((1, 2))),
            (format!("a\r{picture},b"), Some((1, 0))),
            ("a\ndata:image/png;base64,AAAA,x".into(), Some((1, 1))),
            ("a cat,\nasleep, on a mat\n\"so\", it seems".into(), None),
            ("seen at\nhttps://example.com/a/very/long/path/of/a/page/that/ends, somewhere".into(), None),
            (picture.clone(), None),
        ] {
            assert_eq!(of(["x", &caption], true), lines, "{caption}");
        }
        let wrapped = [&picture[..], &picture, "AAAA"].join("\n");
        assert_eq!(of([&wrapped, "a\nb"], true), None);
        assert_eq!(of([&format!("{wrapped},b\n{picture},c"), "d"], true), Some((0, 3)));
        // Lines of the fields before count.
        assert_eq!(of([&wrapped, &format!("d\n{picture},c")], true), Some((1, 3)));
        assert_eq!(of(["a.jpg", "b\nc.jpg,d"], false), Some((1, 1)));
        assert_eq!(of(["a.jpg", "b\nc, d"], false), None);
    }
}
