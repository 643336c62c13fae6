//! Text in two or four bytes a character that says so by no mark: told by where its zeros stand.

/// The encoding that `head`, the first bytes of a file, seems to be in, if that is UTF-16 or UTF-32: by its mark, or
/// by its zeros. The ASCII letters, commas and line ends of a table have them.
pub(super) fn wide(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] => return Some("utf-32le"),
        [0, 0, 0xfe, 0xff, ..] => return Some("utf-32be"),
        [0xff, 0xfe, ..] => return Some("utf-16le"),
        [0xfe, 0xff, ..] => return Some("utf-16be"),
        _ => {}
    }
    let units = (head.len() / 4).max(1);
    // Zeros at each place of four bytes.
    let mut zeros = [0; 4];
    head.iter().zip((0..4).cycle()).filter(|(byte, _)| **byte == 0).for_each(|(_, at)| zeros[at] += 1);
    let many = |at: usize| zeros[at] * 4 >= units;
    match zeros {
        [0, _, c, d] if c >= units && d >= units => Some("utf-32le"),
        [a, b, _, 0] if a >= units && b >= units => Some("utf-32be"),
        [0, _, 0, _] if many(1) && many(3) => Some("utf-16le"),
        [_, 0, _, 0] if many(0) && many(2) => Some("utf-16be"),
        _ => None,
    }
}

/// What a file in the encoding `wide` is, and what to do.
pub(super) fn advice(wide: &str) -> String {
    if wide.starts_with("utf-32") {
        return "seems to be UTF-32, which is not read: save it as UTF-8".into();
    }
    format!("seems to be {}: set data_config.encoding={wide}, or save it as UTF-8", wide.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_tell_the_encoding() {
        let text = "image,caption\nAAAA,caf\u{e9} \u{2019}\u{4e2d}\n";
        let two: Vec<u16> = text.encode_utf16().collect();
        let four: Vec<u32> = text.chars().map(u32::from).collect();
        for mark in [false, true] {
            let bytes = |le: Vec<u8>, mark_bytes: &[u8]| if mark { [mark_bytes, &le].concat() } else { le };
            let of = |bytes: Vec<u8>| wide(&bytes);
            let le = two.iter().flat_map(|u| u.to_le_bytes()).collect();
            assert_eq!(of(bytes(le, &[0xff, 0xfe])), Some("utf-16le"));
            let be = two.iter().flat_map(|u| u.to_be_bytes()).collect();
            assert_eq!(of(bytes(be, &[0xfe, 0xff])), Some("utf-16be"));
            let le = four.iter().flat_map(|u| u.to_le_bytes()).collect();
            assert_eq!(of(bytes(le, &[0xff, 0xfe, 0, 0])), Some("utf-32le"));
            let be = four.iter().flat_map(|u| u.to_be_bytes()).collect();
            assert_eq!(of(bytes(be, &[0, 0, 0xfe, 0xff])), Some("utf-32be"));
        }
        for other in [text.as_bytes(), b"", b"\0", b"ab\0\0cdef\0", &[0; 64]] {
            assert_eq!(wide(other), None, "{other:?}");
        }
    }
}
