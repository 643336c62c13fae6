//! Tells a picture's format from its first bytes, and names what else a file turned out to be.

mod foreign;
mod text;

use super::Reject;
use crate::text::printable;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JPEG.
    Jpeg,
    /// PNG and APNG.
    Png,
    /// WebP.
    WebP,
    /// GIF.
    Gif,
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";
const GIFS: [&[u8]; 2] = [b"GIF87a", b"GIF89a"];

/// The format of `bytes`, or why they are none of ours.
pub(super) fn sniff(bytes: &[u8]) -> Result<Format, Reject> {
    if bytes.is_empty() {
        return Err(Reject::empty_file());
    }
    if bytes.starts_with(PNG) {
        return Ok(Format::Png);
    }
    if bytes.starts_with(JPEG) {
        return Ok(Format::Jpeg);
    }
    if GIFS.iter().any(|gif| bytes.starts_with(gif)) {
        return Ok(Format::Gif);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Ok(Format::WebP);
    }
    if cut_in_signature(bytes) {
        return Err(Reject::truncated(format!("the file ends after {} bytes", bytes.len())));
    }
    if bytes.starts_with(b"\x89PNG") {
        return Err(Reject::corrupt("the PNG signature is damaged, as by a transfer in text mode"));
    }
    Err(something_else(bytes))
}

/// Whether `bytes` are the beginning of a signature and no more. Two letters alone could be a text.
fn cut_in_signature(bytes: &[u8]) -> bool {
    let of = |signature: &[u8], least: usize| bytes.len() >= least && signature.starts_with(bytes);
    let riff = bytes.len() < 12 && bytes.starts_with(b"RIFF");
    of(PNG, 1) || of(JPEG, 1) || GIFS.iter().any(|gif| of(gif, 3)) || of(b"RIFF", 3) || riff
}

/// Names what is not read.
fn something_else(bytes: &[u8]) -> Reject {
    if let Some((name, remedy)) = foreign::kind(bytes) {
        return Reject::unsupported(format!("{name} files are not read: {remedy}"));
    }
    let shown = format!("{} bytes, beginning `{}`", bytes.len(), preview(bytes));
    match text::kind(bytes) {
        Some(what) => Reject::not_an_image(format!("{what}; {shown}")),
        None => Reject::not_an_image(shown),
    }
}

/// The first bytes as one line of text, so that a failed download is obvious.
fn preview(bytes: &[u8]) -> String {
    printable(bytes, 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(bytes: &[u8]) -> &'static str {
        sniff(bytes).map_or_else(|e| e.reason, |_| "ok")
    }

    #[test]
    fn names_what_it_finds() {
        assert_eq!(reason(b""), "empty_file");
        assert_eq!(reason(b"RIFF\x10\0\0\0WEBPVP8 "), "ok");
        assert_eq!(reason(b"GIF89a\x01\0"), "ok");
        assert_eq!(reason(b"\x89PNG\n\x1a\n"), "corrupt");
        assert_eq!(reason(b"GIF90a\x01\0"), "not_an_image");
        assert_eq!(reason(b"BMW is a car maker"), "not_an_image");
    }

    #[test]
    fn a_part_of_a_signature_is_a_cut_file() {
        for bytes in [&b"\x89PN"[..], b"\xff\xd8", b"\xff", b"GIF8", b"RIFF", b"RIFF\x10\0\0\0WEB"] {
            assert_eq!(reason(bytes), "truncated", "{bytes:?}");
        }
        assert_eq!(reason(b"R"), "not_an_image");
        assert_eq!(reason(b"GI"), "not_an_image");
    }

    #[test]
    fn shows_the_first_bytes_as_text() {
        let e = sniff(b"<!doctype html><title>404</title>").unwrap_err();
        assert_eq!(e.reason, "not_an_image");
        assert!(e.detail.contains("<!doctype html><title>404"), "{}", e.detail);
        assert!(preview(b"a\n\x00\xff").is_ascii());
    }
}
