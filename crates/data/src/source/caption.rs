//! Cleaning of captions, the same for every source.

/// Cleans a caption: nothing at either end, and a break of the line (with the white space around it) or a
/// tab is one space. Everything else stays, also words such as `None`. May return an empty string.
pub fn clean_caption(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.trim();
    while let Some(at) = rest.find(char::is_whitespace) {
        let (text, tail) = rest.split_at(at);
        let next = tail.trim_start();
        let gap = &tail[..tail.len() - next.len()];
        out.push_str(text);
        out.push_str(if gap.chars().any(breaks_line) { " " } else { gap });
        rest = next;
    }
    out.push_str(rest);
    out
}

/// The reason of a row whose caption is no text.
pub(crate) const BAD_ENCODING: &str = "bad_encoding";

/// What makes a caption no text although it is well-formed: a byte 0.
pub(crate) fn no_text(caption: &str) -> Option<String> {
    let at = caption.find('\0')?;
    Some(format!("the caption is no text: it has a byte 0 (behind {at} others)"))
}

/// Line ends and tabs, of which a caption keeps only a space.
fn breaks_line(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_become_one_space() {
        for (raw, wanted) in [
            ("a cat\nsleeps", "a cat sleeps"),
            ("two\r\nlines", "two lines"),
            ("many \r\n\r\n  lines", "many lines"),
            ("tab\there", "tab here"),
            ("  ends\n", "ends"),
            (" \t\r\n ", ""),
            ("two  spaces", "two  spaces"),
            ("None", "None"),
            ("caf\u{e9} \u{1f600}\u{2028}x", "caf\u{e9} \u{1f600} x"),
        ] {
            assert_eq!(clean_caption(raw), wanted, "{raw:?}");
            assert_eq!(clean_caption(wanted), wanted, "cleaning twice changes nothing");
        }
    }
}
