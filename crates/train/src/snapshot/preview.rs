//! The first bytes of a file that is no safetensors file, for a message.

/// Bytes that are looked at.
pub(super) const BYTES: usize = 40;
/// Characters that are shown.
const SHOWN: usize = 24;
/// The shortest text that is told from a snapshot cut within its first 8 bytes: their upper half is zeros.
const SHORTEST: usize = 4;

/// True if a file with these first bytes never was a safetensors file, as far as they tell: after 8 bytes of length
/// the format has a brace.
pub(super) fn is_other(start: &[u8]) -> bool {
    match start.get(8) {
        Some(byte) => *byte != b'{',
        None => start.len() >= SHORTEST && text(start).is_some(),
    }
}

/// The first bytes in words.
pub(super) fn of(start: &[u8]) -> String {
    if start.starts_with(b"version https://git-lfs") {
        return "the text of a Git LFS pointer, which stands for the file (`git lfs pull` fetches it)".into();
    }
    match text(start) {
        Some(text) => {
            let shown: String = text.chars().take(SHOWN).collect();
            format!("the text {shown:?}")
        }
        None => {
            let bytes: Vec<String> = start.iter().take(8).map(|b| format!("{b:02x}")).collect();
            format!("the bytes {}", bytes.join(" "))
        }
    }
}

/// The start as text, if it is text; a character cut at its end is left out.
fn text(start: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&start[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let readable = |c: char| !c.is_control() || c.is_ascii_whitespace();
    (!text.is_empty() && text.chars().all(readable)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_told_apart() {
        assert_eq!(of(b"<!doctype html>\n<p>Not found, sorry"), "the text \"<!doctype html>\\n<p>Not f\"");
        assert_eq!(of("gr\u{fc}n".as_bytes()), "the text \"gr\u{fc}n\"");
        assert_eq!(of(b"\x89PNG\r\n\x1a\n\0\0"), "the bytes 89 50 4e 47 0d 0a 1a 0a");
        assert!(of(b"version https://git-lfs.github.com/spec/v1").contains("git lfs pull"));
        assert!(is_other(b"hello") && is_other(b"not a snapshot") && is_other(&[0; 9]));
        assert!(!is_other(b"") && !is_other(b"x") && !is_other(b"x\x02\0\0") && !is_other(b"12345678{"));
    }
}
