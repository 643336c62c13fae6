//! Tells a picture's format from its first bytes, and names what else a file turned out to be.

use super::Reject;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// The format of `bytes`, or why they are none of ours.
pub(super) fn sniff(bytes: &[u8]) -> Result<Format, Reject> {
    if bytes.is_empty() {
        return Err(Reject::new("empty_file", "the file has no bytes"));
    }
    if bytes.starts_with(PNG) {
        return Ok(Format::Png);
    }
    if bytes.starts_with(JPEG) {
        return Ok(Format::Jpeg);
    }
    if PNG.starts_with(bytes) || JPEG.starts_with(bytes) {
        return Err(Reject::truncated(format!("the file ends after {} bytes", bytes.len())));
    }
    if bytes.starts_with(b"\x89PNG") {
        return Err(Reject::corrupt("the PNG signature is damaged, as by a transfer in text mode"));
    }
    if let Some(name) = foreign(bytes) {
        let detail = format!("{name} files are not read yet: convert it to JPEG or PNG");
        return Err(Reject::new("unsupported_format", detail));
    }
    Err(Reject::new("not_an_image", format!("{} bytes, beginning `{}`", bytes.len(), preview(bytes))))
}

/// Bytes that stand at an offset.
type Tag = (usize, &'static [u8]);

/// Picture formats that are recognised but not read.
fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let at = |offset: usize, tag: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(tag));
    let kinds: [(&[Tag], &str); 9] = [
        (&[(0, b"RIFF"), (8, b"WEBP")], "WebP"),
        (&[(0, b"GIF8")], "GIF"),
        (&[(0, b"BM"), (6, b"\0\0\0\0")], "BMP"),
        (&[(0, b"II*\0")], "TIFF"),
        (&[(0, b"MM\0*")], "TIFF"),
        (&[(4, b"ftypavi")], "AVIF"),
        (&[(4, b"ftyp")], "HEIF"),
        (&[(0, b"\xff\x0a")], "JPEG XL"),
        (&[(0, b"\0\0\0\x0cJXL ")], "JPEG XL"),
    ];
    kinds.iter().find(|(tags, _)| tags.iter().all(|(offset, tag)| at(*offset, tag))).map(|(_, name)| *name)
}

/// The first bytes as one line of text, so that a failed download is obvious.
pub(super) fn preview(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(48)].escape_ascii().to_string()
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
        assert_eq!(reason(b"\x89PN"), "truncated");
        assert_eq!(reason(b"\xff\xd8"), "truncated");
        assert_eq!(reason(b"\x89PNG\n\x1a\n"), "corrupt");
        assert_eq!(reason(b"RIFF\x10\0\0\0WEBPVP8 "), "unsupported_format");
        assert_eq!(reason(b"GIF89a\x01\0"), "unsupported_format");
        assert_eq!(reason(b"BMW is a car maker"), "not_an_image");
        assert!(sniff(b"GIF89a").is_err_and(|e| e.detail.contains("GIF")));
    }

    #[test]
    fn shows_the_first_bytes_as_text() {
        let e = sniff(b"<!doctype html><title>404</title>").unwrap_err();
        assert_eq!(e.reason, "not_an_image");
        assert!(e.detail.contains("<!doctype html><title>404"), "{}", e.detail);
        assert!(preview(b"a\n\x00\xff").is_ascii());
    }
}
