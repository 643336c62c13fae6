//! How a picture must be turned to stand upright: by the orientation of its EXIF block, or of its XMP where the EXIF has none.
//! Pillow's `ImageOps.exif_transpose` is followed. A value that means nothing means upright already.

use ::image::metadata::Orientation;

/// What a file says of itself; each part where it has one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Metadata<'a> {
    /// A TIFF block, by some writers with the head that it has in JPEG.
    pub(super) exif: Option<&'a [u8]>,
    /// A text in XML.
    pub(super) xmp: Option<&'a [u8]>,
}

/// Tag of the orientation (Exif 2.32, 4.6.4).
const TAG: u16 = 0x112;
/// Head of a TIFF block in JPEG.
pub(super) const EXIF_HEAD: &[u8] = b"Exif\0\0";
/// Head of XMP in JPEG.
pub(super) const XMP_HEAD: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// How the picture must be turned.
pub(super) fn of(metadata: Metadata<'_>) -> Orientation {
    let exif = metadata.exif.and_then(in_exif);
    let value = exif.or_else(|| metadata.xmp.and_then(in_xmp)).and_then(|value| u8::try_from(value).ok());
    value.and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms)
}

/// The orientation that stands in the first directory of a TIFF block, whatever it is.
fn in_exif(block: &[u8]) -> Option<u32> {
    let block = block.strip_prefix(EXIF_HEAD).unwrap_or(block);
    let little = match block.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let number = |at: usize, len: usize| -> Option<u32> {
        let bytes = block.get(at..at.checked_add(len)?)?;
        let add = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        Some(if little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    };
    let directory = usize::try_from(number(4, 4)?).ok()?;
    let entries = number(directory, 2)? as usize;
    // Each of 12 bytes: tag, type, count, value.
    let places = (0..entries).map(|i| directory.saturating_add(2 + 12 * i));
    let mut places = places.take_while(|at| *at < block.len());
    let at = places.find(|at| number(*at, 2) == Some(TAG.into()))?;
    match (number(at + 2, 2)?, number(at + 4, 4)?) {
        // Of 16 bits, with and without a sign.
        (3 | 8, 1) => number(at + 8, 2),
        (4 | 9, 1) => number(at + 8, 4),
        _ => Some(0),
    }
}

/// The orientation in XMP: as an attribute or as an element.
fn in_xmp(text: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"tiff:Orientation";
    let places = text.windows(NAME.len()).enumerate().filter(|(_, found)| *found == NAME);
    places.map(|(at, _)| &text[at + NAME.len()..]).find_map(|rest| {
        let rest = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">"))?;
        rest.first().filter(|byte| byte.is_ascii_digit()).map(|digit| u32::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block with the tag of a maker and an orientation of a type.
    fn block(little: bool, kind: u16, count: u32, value: u32) -> Vec<u8> {
        let short = |n: u16| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        let long = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        let mut bytes = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
        bytes.extend(long(8));
        bytes.extend(short(2));
        for (tag, kind, count, value) in [(0x10f, 2, 1, 0), (TAG, kind, count, value)] {
            bytes.extend([short(tag), short(kind)].concat());
            bytes.extend(long(count));
            match kind {
                3 => bytes.extend([short(value as u16), [0; 2]].concat()),
                _ => bytes.extend(long(value)),
            }
        }
        bytes
    }

    #[test]
    fn numbers_of_any_width_count() {
        for little in [true, false] {
            for kind in [3, 4, 9] {
                let bytes = block(little, kind, 1, 6);
                assert_eq!(in_exif(&bytes), Some(6), "{little} {kind}");
                assert_eq!(in_exif(&[EXIF_HEAD, &bytes].concat()), Some(6));
                for end in 0..bytes.len() - 4 {
                    assert_eq!(in_exif(&bytes[..end]), None, "{end}");
                }
            }
        }
        assert_eq!(in_exif(&block(true, 3, 2, 6)), Some(0));
        assert_eq!(in_exif(&block(true, 2, 1, 6)), Some(0));
        assert_eq!(in_exif(b""), None);
    }

    #[test]
    fn xmp_counts_where_exif_says_nothing() {
        let xmp = |text: &'static str| Some(text.as_bytes());
        let of = |exif: Option<&[u8]>, xmp| of(Metadata { exif, xmp });
        let attribute = "<rdf:Description tiff:Orientation=\"6\"/>";
        assert_eq!(of(None, xmp(attribute)), Orientation::Rotate90);
        assert_eq!(of(None, xmp("<tiff:Orientation>3</tiff:Orientation>")), Orientation::Rotate180);
        assert_eq!(of(Some(b"no block"), xmp(attribute)), Orientation::Rotate90);
        assert_eq!(of(Some(&block(true, 3, 1, 3)), xmp(attribute)), Orientation::Rotate180);
        assert_eq!(of(Some(&block(true, 3, 1, 99)), xmp(attribute)), Orientation::NoTransforms);
        for text in ["", "tiff:Orientation", "tiff:Orientation=\"x\"", "tiff:Orientation=\"9\""] {
            assert_eq!(of(None, xmp(text)), Orientation::NoTransforms, "{text}");
        }
    }
}
