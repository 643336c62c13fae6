//! Resizing and JPEG decoding against Pillow's values. The fixtures, and the script that made them:
//! `make_image_fixtures.py`.

use std::path::PathBuf;

use ocelli_data::image::{DecodeOptions, Rgb, decode, scaled};

fn load(name: &str) -> Rgb {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    decode(&std::fs::read(path).unwrap(), &DecodeOptions::default()).unwrap()
}

/// Largest and mean difference.
fn difference(a: &[u8], b: &[u8]) -> (u8, f64) {
    assert_eq!(a.len(), b.len());
    let worst = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    let sum: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    (worst, sum as f64 / a.len() as f64)
}

#[test]
fn resize_equals_pillows_bilinear() {
    for name in ["small", "wide", "tall", "photo", "line"] {
        let picture = load(&format!("resize/{name}.png"));
        for size in [8, 32, 48] {
            let wanted = load(&format!("resize/{name}_{size}.png"));
            let (worst, mean) = difference(&scaled(&picture, size).unwrap(), &wanted.pixels);
            assert!(worst <= 2 && mean <= 0.5, "{name} to {size}: largest {worst}, mean {mean:.3}");
        }
    }
}

/// The bound is able to fail: a resize without antialiasing is far outside of it.
#[test]
fn nearest_is_not_bilinear() {
    let picture = load("resize/photo.png");
    let wanted = load("resize/photo_32.png");
    let nearest: Vec<u8> = (0..32 * 32 * 3)
        .map(|i| {
            let (x, y) = (i / 3 % 32 * 160 / 32, i / 96 * 120 / 32);
            picture.pixels[(y * 160 + x) * 3 + i % 3]
        })
        .collect();
    let (worst, mean) = difference(&nearest, &wanted.pixels);
    assert!(worst > 20 && mean > 2.0, "largest {worst}, mean {mean}");
}

/// Decoding and scaling together: what a model sees of a JPEG file, against what it would see by Pillow.
#[test]
fn jpeg_files_are_seen_as_with_pillow() {
    let (mut most, mut highest) = (0, 0.0_f64);
    for name in ["420", "422", "444", "progressive", "grey"] {
        let seen = scaled(&load(&format!("photo/{name}.jpg")), 96).unwrap();
        let (worst, mean) = difference(&seen, &load(&format!("photo/{name}.png")).pixels);
        assert!(worst <= 2 && mean <= 0.5, "{name}: largest {worst}, mean {mean:.3}");
        (most, highest) = (most.max(worst), highest.max(mean));
    }
    println!("largest {most}, mean at most {highest:.3}");
    // Another picture fails.
    let other = scaled(&load("photo/420.jpg"), 96).unwrap();
    assert!(difference(&other, &load("photo/progressive.png").pixels).1 > 10.0);
}

const JPEGS: [&str; 16] = [
    "baseline_444",
    "baseline_422",
    "baseline_420",
    "restarts",
    "progressive",
    "progressive_restarts",
    "grey",
    "cmyk",
    "ycck",
    "cmyk_progressive",
    "rgb",
    "grey_progressive",
    "baseline_440",
    "baseline_411",
    "grey_factors",
    "cmyk_plain",
];

#[test]
fn every_kind_of_jpeg_decodes_as_in_pillow() {
    for name in JPEGS {
        let (found, wanted) = (load(&format!("jpeg/{name}.jpg")), load(&format!("jpeg/{name}.png")));
        assert_eq!((found.width, found.height), (wanted.width, wanted.height), "{name}");
        let (worst, mean) = difference(&found.pixels, &wanted.pixels);
        assert!(worst == 0, "{name}: largest {worst}, mean {mean:.3}");
    }
}

/// However a file was cut, and whatever stands in for the rest, nothing of it is fed to a model; but progressive files that
/// end behind a whole scan are whole pictures of less detail.
#[test]
fn every_cut_of_every_jpeg_is_found() {
    for name in JPEGS {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/jpeg/{name}.jpg"));
        let bytes = std::fs::read(path).unwrap();
        for cut in 1..bytes.len() - 2 {
            for tail in [&b""[..], b"\xff\xd9", &[0; 64]] {
                let file = [&bytes[..cut], tail].concat();
                let found = decode(&file, &DecodeOptions::default());
                // All that follows the last block is padding to a whole byte: it may be missing.
                let detail = found.as_ref().is_ok_and(|picture| picture.warnings.incomplete)
                    && name.contains("progressive")
                    && tail.len() == 2;
                let reason = found.map_or_else(|e| e.reason, |_| "accepted");
                assert!(
                    detail || matches!(reason, "truncated" | "corrupt" | "not_an_image"),
                    "{name} cut at {cut} of {}, tail of {}: {reason}",
                    bytes.len(),
                    tail.len()
                );
                if tail.is_empty() {
                    assert_eq!(reason, "truncated", "{name} cut at {cut}");
                }
            }
        }
        let picture = decode(&bytes[..bytes.len() - 2], &DecodeOptions::default()).unwrap();
        assert_eq!(picture.warnings.words().collect::<Vec<_>>(), ["no_end_marker"], "{name}");
        assert_eq!(picture.pixels, load(&format!("jpeg/{name}.jpg")).pixels, "{name}");
    }
}
