//! Every kind of PNG, WebP and GIF file against Pillow's pixels, laid on white and without alpha; EXIF in each
//! format that has it; the smallest and the longest pictures. The fixtures come from `make_format_fixtures.py`.

mod image_common;

use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use image_common::{find, mend_checksums, png_chunk, png_with};
use ocelli_data::image::{DecodeOptions, Rgb, decode, scaled};
use serde_json::{Map, Value};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

fn expected() -> Map<String, Value> {
    let text = std::fs::read_to_string(folder().join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn pixels(entry: &Value, key: &str) -> Vec<u8> {
    let code = entry.get(key).unwrap_or(&entry["pillow"]).as_str().unwrap();
    base64::engine::general_purpose::STANDARD.decode(code).unwrap()
}

fn same(name: &str, found: &Rgb, entry: &Value, key: &str) {
    assert_eq!(serde_json::json!([found.width, found.height]), entry["size"], "{name}");
    let wanted = pixels(entry, key);
    let worst = found.pixels.iter().zip(&wanted).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    let place = found.pixels.iter().zip(&wanted).position(|(a, b)| a != b);
    assert_eq!((found.pixels.len(), worst), (wanted.len(), 0), "{name}, {key}: first at byte {place:?}");
}

#[test]
fn every_kind_shows_what_pillow_shows() {
    let expected = expected();
    assert!(expected.len() > 70, "{}", expected.len());
    for (name, entry) in &expected {
        let bytes = read(name);
        let exact = decode(&bytes, &DecodeOptions::pillow(1_000_000));
        same(name, &exact.unwrap_or_else(|e| panic!("{name}: {e}")), entry, "pillow");
        same(name, &decode(&bytes, &DecodeOptions::default()).unwrap(), entry, "white");
    }
}

/// The comparison is able to fail: files with alpha are expected to differ.
#[test]
fn alpha_makes_a_difference() {
    let differing: Vec<String> =
        expected().into_iter().filter(|(_, e)| e.get("white").is_some()).map(|(name, _)| name).collect();
    for name in ["grey1_trns.png", "rgba16.png", "lossy_alpha.webp", "animated_alpha.webp", "transparent.gif"]
    {
        assert!(differing.iter().any(|d| d == name), "{name} is not in {differing:?}");
    }
}

#[test]
fn only_the_first_frame_is_taken_and_that_is_reported() {
    let names = ["animated.png", "animated.webp", "animated_lossy.webp", "offset.webp", "animated.gif"];
    for (name, entry) in expected() {
        let picture = decode(&read(&name), &DecodeOptions::default()).unwrap();
        let animated = name.starts_with("animated") || names.contains(&name.as_str());
        let words: Vec<_> = picture.warnings.words().collect();
        assert_eq!(words, if animated { vec!["animated"] } else { vec![] }, "{name}");
        assert!(!pixels(&entry, "pillow").is_empty());
    }
}

#[test]
fn orientation_is_applied_in_every_format() {
    let upright = decode(&read("o1.png"), &DecodeOptions::default()).unwrap();
    let as_stored = DecodeOptions { exif: false, ..DecodeOptions::default() };
    for value in [1, 2, 3, 4, 5, 6, 7, 8, 99] {
        for ending in ["png", "webp"] {
            let bytes = read(&format!("o{value}.{ending}"));
            assert_eq!(decode(&bytes, &DecodeOptions::default()).unwrap(), upright, "o{value}.{ending}");
            let stored = decode(&bytes, &as_stored).unwrap();
            assert_eq!(stored != upright, (2..=8).contains(&value), "o{value}.{ending}");
        }
    }
}

/// As a number of 32 bits in EXIF, as text of ImageMagick's, or in XMP: Pillow applies each.
#[test]
fn orientation_is_found_wherever_it_is_written() {
    let of = |bytes: &[u8]| decode(bytes, &DecodeOptions::default()).unwrap();
    let upright = of(&read("o1.png"));
    let zlib = |text: &[u8]| {
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    };
    for value in 1..=8 {
        let file = read(&format!("o{value}.png"));
        let at = find(&file, b"eXIf") - 4;
        let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let (exif, plain) = (&file[at + 8..at + 8 + len], [&file[..at], &file[at + 12 + len..]].concat());
        let hex: String = [b"Exif\0\0", exif].concat().iter().map(|b| format!("{b:02x}")).collect();
        let profile = format!("\nexif\n{:8}\n{}\n{}\n", hex.len() / 2, &hex[..20], &hex[20..]).into_bytes();
        let xmp =
            format!("<x:xmpmeta><rdf:Description tiff:Orientation=\"{value}\"/></x:xmpmeta>").into_bytes();
        let (name, xml) = (b"Raw profile type exif\0", b"XML:com.adobe.xmp\0");
        for (kind, body) in [
            (b"tEXt", [&name[..], &profile].concat()),
            (b"zTXt", [&name[..], b"\0", &zlib(&profile)].concat()),
            (b"iTXt", [&name[..], b"\0\0en\0\0", &profile].concat()),
            (b"iTXt", [&name[..], b"\x01\0\0\0", &zlib(&profile)].concat()),
            (b"iTXt", [&xml[..], b"\0\0\0\0", &xmp].concat()),
            (b"iTXt", [&xml[..], b"\x01\0\0\0", &zlib(&xmp)].concat()),
        ] {
            assert_eq!(
                of(&png_with(&plain, &png_chunk(kind, &body))),
                upright,
                "{value} {}",
                kind.escape_ascii()
            );
        }
        let bomb = zlib(&[profile, vec![b'\n'; 2 << 20]].concat());
        let ignored = png_with(&plain, &png_chunk(b"zTXt", &[&name[..], b"\0", &bomb].concat()));
        assert_eq!(of(&ignored), of(&plain));
    }
}

/// The pixels of a PNG file have a checksum of their own.
#[test]
fn a_wrong_checksum_of_pixels_is_damage() {
    for name in ["rgb8.png", "rgb8_interlaced.png", "palette4_trns.png", "grey1.png", "animated.png"] {
        let mut file = read(name);
        let mut last = None;
        let mut at = 8;
        while at + 8 < file.len() {
            let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
            last = if &file[at + 4..at + 8] == b"IDAT" { Some(at + 8 + len - 1) } else { last };
            at += 12 + len;
        }
        file[last.unwrap()] ^= 1;
        mend_checksums(&mut file);
        assert_eq!(decode(&file, &DecodeOptions::default()).unwrap_err().reason, "corrupt", "{name}");
    }
}

#[test]
fn thin_and_tiny_pictures_are_read_and_scaled() {
    for (ending, longest) in [("jpg", 65500), ("png", 65535), ("webp", 16383), ("gif", 65535)] {
        for (width, height) in [(1, 1), (1, 2000), (2000, 1), (longest, 1), (1, longest)] {
            let name = format!("thin_{width}x{height}.{ending}");
            let picture =
                decode(&read(&name), &DecodeOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!((picture.width, picture.height), (width, height), "{name}");
            let scaled = scaled(&picture, 8).unwrap();
            assert!(
                scaled.chunks_exact(3).all(|p| p.iter().zip([200, 60, 30]).all(|(a, b)| a.abs_diff(b) <= 2)),
                "{name}: {:?}",
                &scaled[..6]
            );
        }
    }
}
