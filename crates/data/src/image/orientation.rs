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
const TAG: u32 = 0x112;
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

/// The orientation that stands in the first directory of a TIFF block, whatever it is; 0 where it is no number.
fn in_exif(mut block: &[u8]) -> Option<u32> {
    while let Some(rest) = block.strip_prefix(EXIF_HEAD) {
        block = rest;
    }
    let little = match block.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let tiff = Tiff { block, little };
    let directory = usize::try_from(tiff.number(4, 4)?).ok()?;
    let entries = tiff.number(directory, 2)? as usize;
    // Each of 12 bytes: tag, type, count, value.
    let places = (0..entries).map(|i| directory.saturating_add(2 + 12 * i));
    let mut places = places.take_while(|at| at.saturating_add(12) <= block.len());
    places.find_map(|at| (tiff.number(at, 2)? == TAG).then(|| tiff.value(at))?)
}

/// A TIFF block and its order of bytes.
struct Tiff<'a> {
    block: &'a [u8],
    little: bool,
}

impl Tiff<'_> {
    /// The number of up to 4 bytes at byte `at`.
    fn number(&self, at: usize, len: usize) -> Option<u32> {
        let bytes = self.block.get(at..at.checked_add(len)?)?;
        let add = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        Some(if self.little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    }

    /// The value of the entry at byte `at`: of several numbers the first one; 0 for what is no small whole number. `None`
    /// for an entry that Pillow passes over: of no type that there is, without value, or with one beyond the block.
    fn value(&self, at: usize) -> Option<u32> {
        let (kind, count) = (self.number(at + 2, 2)?, self.number(at + 4, 4)? as usize);
        let size = match kind {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16 => 8,
            _ => return None,
        };
        let total = count.checked_mul(size).filter(|total| *total > 0)?;
        let place = if total <= 4 { at + 8 } else { self.number(at + 8, 4)? as usize };
        self.block.get(place..place.checked_add(total)?)?;
        let first = self.number(place, size.min(4))?;
        let second = if size == 8 { self.number(place + 4, 4)? } else { 0 };
        let (low, high) = if self.little { (first, second) } else { (second, first) };
        let both = u64::from(high) << 32 | u64::from(low);
        Some(match kind {
            // Bytes and text.
            1 | 2 | 7 => 0,
            5 | 10 => whole(f64::from(first) / f64::from(second)),
            11 => whole(f32::from_bits(first).into()),
            12 => whole(f64::from_bits(both)),
            16 => u32::try_from(both).unwrap_or(0),
            _ => first,
        })
    }
}

/// An orientation that is written as a broken number.
fn whole(x: f64) -> u32 {
    (1..=8).find(|n| f64::from(*n) == x).unwrap_or(0)
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

    /// A block with the tag of a maker and an orientation of a type; of more than 4 bytes behind the directory.
    fn block(little: bool, kind: u16, count: u32, value: u32) -> Vec<u8> {
        let short = |n: u16| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        let long = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        let mut bytes = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
        bytes.extend(long(8));
        bytes.extend(short(2));
        for (tag, kind, count, value) in [(0x10f, 2, 1, 0), (TAG as u16, kind, count, value)] {
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
                for end in 0..bytes.len() {
                    assert_eq!(in_exif(&bytes[..end]), None, "{end}");
                }
            }
        }
    }

    /// As Pillow 13 reads them.
    #[test]
    fn of_other_types_and_counts_the_first_number_is_taken() {
        let number = |kind, count, value: &[u8]| {
            let mut bytes = block(true, kind, count, 34);
            if value.len() > 4 {
                bytes.extend(value);
            } else {
                let at = bytes.len() - 4;
                bytes[at..][..value.len()].copy_from_slice(value);
            }
            in_exif(&bytes)
        };
        assert_eq!(number(3, 2, &[6, 0, 1, 0]), Some(6));
        assert_eq!(number(3, 3, &[6, 0, 1, 0, 1, 0]), Some(6));
        assert_eq!(number(3, 4, &[6, 0, 1, 0, 1, 0]), None, "beyond the block");
        assert_eq!(number(3, 0, &[6, 0]), None);
        assert_eq!(number(6, 1, &[6]), Some(6));
        assert_eq!(number(5, 1, &[12, 0, 0, 0, 2, 0, 0, 0]), Some(6));
        assert_eq!(number(5, 1, &[13, 0, 0, 0, 2, 0, 0, 0]), Some(0));
        assert_eq!(number(5, 1, &[13, 0, 0, 0, 0, 0, 0, 0]), Some(0));
        assert_eq!(number(11, 1, &6f32.to_le_bytes()), Some(6));
        assert_eq!(number(12, 1, &6f64.to_le_bytes()), Some(6));
        assert_eq!(number(16, 1, &6u64.to_le_bytes()), Some(6));
        for (kind, text) in [(1, 6), (2, b'6'), (7, 6)] {
            assert_eq!(number(kind, 1, &[text]), Some(0), "{kind}");
        }
        assert_eq!([number(0, 1, &[6]), number(14, 1, &[6])], [None; 2], "types that do not exist");
    }

    #[test]
    fn a_text_is_no_number() {
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
