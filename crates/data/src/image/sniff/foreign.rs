//! Formats of pictures, videos and documents that are recognised but not read.

/// Bytes that stand at an offset.
type Tag = (usize, &'static [u8]);

const CONVERT: &str = "convert them to JPEG or PNG";
const STILL: &str = "take a still picture out, as JPEG or PNG";
const RENDER: &str = "render them to PNG";
const UNPACK: &str = "unpack them first";

/// What begins a file of each kind, its name, and what to do. The first that fits is taken.
const KINDS: [(&[Tag], &str, &str); 38] = [
    (&[(0, b"BM"), (6, b"\0\0\0\0"), (15, b"\0\0\0")], "BMP", CONVERT),
    (&[(0, b"II*\0")], "TIFF", CONVERT),
    (&[(0, b"MM\0*")], "TIFF", CONVERT),
    (&[(0, b"II+\0")], "TIFF", CONVERT),
    (&[(0, b"MM\0+")], "TIFF", CONVERT),
    (&[(0, b"II\xbc")], "JPEG XR", CONVERT),
    (&[(4, b"ftypavi")], "AVIF", CONVERT),
    (&[(4, b"ftyphe")], "HEIC", CONVERT),
    (&[(4, b"ftypmif1"), (16, b"avif")], "AVIF", CONVERT),
    (&[(4, b"ftypmif1"), (20, b"avif")], "AVIF", CONVERT),
    (&[(4, b"ftypm"), (10, b"f1")], "HEIF", CONVERT),
    (&[(4, b"ftypcrx")], "Canon raw", CONVERT),
    (&[(4, b"ftyp")], "MP4 or QuickTime", STILL),
    (&[(0, b"\xff\x0a")], "JPEG XL", CONVERT),
    (&[(0, b"\0\0\0\x0cJXL ")], "JPEG XL", CONVERT),
    (&[(0, b"\0\0\0\x0cjP  ")], "JPEG 2000", CONVERT),
    (&[(0, b"\xff\x4f\xff\x51")], "JPEG 2000", CONVERT),
    (&[(0, b"\0\0\x01\0"), (5, b"\0")], "ICO", CONVERT),
    (&[(0, b"\0\0\x02\0"), (5, b"\0")], "CUR", CONVERT),
    (&[(0, b"8BPS")], "Photoshop", CONVERT),
    (&[(0, b"qoif")], "QOI", CONVERT),
    (&[(0, b"DDS ")], "DDS", CONVERT),
    (&[(0, b"\x76\x2f\x31\x01")], "OpenEXR", CONVERT),
    (&[(0, b"#?RADIANCE")], "Radiance HDR", CONVERT),
    (&[(0, b"\x8aMNG\r\n")], "MNG", STILL),
    (&[(0, b"\x8bJNG\r\n")], "JNG", CONVERT),
    (&[(0, b"RIFF"), (8, b"AVI ")], "AVI", STILL),
    (&[(0, b"\x1a\x45\xdf\xa3")], "Matroska or WebM", STILL),
    (&[(0, b"%PDF")], "PDF", RENDER),
    (&[(0, b"%!PS")], "PostScript", RENDER),
    (&[(0, b"\x1f\x8b")], "gzip", UNPACK),
    (&[(0, b"PK\x03\x04")], "ZIP", UNPACK),
    (&[(0, b"BZh")], "bzip2", UNPACK),
    (&[(0, b"\xfd7zXZ")], "xz", UNPACK),
    (&[(0, b"7z\xbc\xaf")], "7-Zip", UNPACK),
    (&[(0, b"\x28\xb5\x2f\xfd")], "Zstandard", UNPACK),
    (&[(0, b"\x93NUMPY")], "NumPy", "write the array as PNG"),
    (&[(0, b"PAR1")], "Parquet", "name the file as data source, not as picture"),
];

/// Name of a kind that is not read, and what to do about it.
pub(super) fn kind(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let at = |(offset, tag): &Tag| bytes.get(*offset..).is_some_and(|rest| rest.starts_with(tag));
    let known = KINDS.iter().find(|(tags, ..)| tags.iter().all(at)).map(|(_, name, remedy)| (*name, *remedy));
    known
        .or_else(|| netpbm(bytes).then_some(("PBM, PGM or PPM", CONVERT)))
        .or_else(|| svg(bytes).then_some(("SVG", RENDER)))
}

/// `P1` to `P7` and white space.
fn netpbm(bytes: &[u8]) -> bool {
    matches!(bytes, [b'P', b'1'..=b'7', space, ..] if space.is_ascii_whitespace())
}

/// An `<svg` in the beginning of a text that begins with a tag.
fn svg(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let head = bytes[..bytes.len().min(1024)].to_ascii_lowercase();
    let html = [&b"<!doctype html"[..], b"<html"].iter().any(|tag| head.starts_with(tag));
    head.starts_with(b"<") && !html && head.windows(4).any(|w| w == b"<svg")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let name = |bytes: &[u8]| kind(bytes).map(|(name, _)| name);
        assert_eq!(name(b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"), Some("BMP"));
        assert_eq!(name(b"\0\0\0\x1cftypavif\0\0\0\0"), Some("AVIF"));
        assert_eq!(name(b"\0\0\0\x1cftypmif1\0\0\0\0avif"), Some("AVIF"));
        assert_eq!(name(b"\0\0\0\x1cftypmif1\0\0\0\0mif1heic"), Some("HEIF"));
        assert_eq!(name(b"\0\0\0\x18ftypheic\0\0\0\0"), Some("HEIC"));
        assert_eq!(name(b"\0\0\0\x18ftypisom\0\0\0\0"), Some("MP4 or QuickTime"));
        assert_eq!(name(b"\xef\xbb\xbf<?xml version='1.0'?>\n<svg width='1'/>"), Some("SVG"));
        assert_eq!(name(b"<html><body><svg/></body></html>"), None);
        assert_eq!(name(b"P6\n1 1\n255\n"), Some("PBM, PGM or PPM"));
        assert_eq!(name(b"P6, a car"), None);
        assert_eq!(name(b"BM is a name for a car of that maker"), None);
    }
}
