//! Every picture of `tests/cases` gets the outcome in `tests/cases/expected.json`.

use std::path::PathBuf;

use ocelli_data::image::{AlphaMode, DecodeOptions, Reject, Rgb, decode};
use serde_json::Value;

fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn read(case: &str, name: &str) -> Vec<u8> {
    std::fs::read(cases().join(case).join(name)).unwrap()
}

fn points_match(name: &str, picture: &Rgb, points: &Value, tolerance: u64) {
    for point in points.as_array().unwrap() {
        let at = |axis: usize, size: u32| {
            let fraction = point["at"][axis].as_f64().unwrap();
            ((fraction * f64::from(size)) as usize).min(size as usize - 1)
        };
        let (x, y) = (at(0, picture.width), at(1, picture.height));
        let offset = (y * picture.width as usize + x) * 3;
        for channel in 0..3 {
            let wanted = point["rgb"][channel].as_u64().unwrap();
            let found = u64::from(picture.pixels[offset + channel]);
            assert!(
                wanted.abs_diff(found) <= tolerance,
                "{name} at ({x}, {y}) channel {channel}: {found}, expected {wanted} +- {tolerance}"
            );
        }
    }
}

fn check(case: &str, name: &str, expected: &Value) {
    let bytes = read(case, name);
    let found = decode(&bytes, &DecodeOptions::default());
    let outcome = expected["outcome"].as_str().unwrap();
    if outcome == "skip" {
        assert_eq!(found.unwrap_err().reason, expected["reason"], "{name}");
        return;
    }
    let picture = found.unwrap_or_else(|e| panic!("{name}: {e}"));
    let size = [u64::from(picture.width), u64::from(picture.height)];
    assert_eq!(expected["size"], serde_json::json!(size), "{name}");
    assert_eq!(!picture.warnings.is_empty(), outcome == "ok_warn", "{name}: {:?}", picture.warnings);
    let tolerance = expected["tol"].as_u64().unwrap();
    points_match(name, &picture, &expected["points"], tolerance);
    if let Some(points) = expected.get("points_drop") {
        let opts = DecodeOptions { alpha: AlphaMode::Drop, ..DecodeOptions::default() };
        points_match(name, &decode(&bytes, &opts).unwrap(), points, tolerance);
    }
}

fn check_case(case: &str) {
    let text = std::fs::read_to_string(cases().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let files = expected[case].as_object().unwrap();
    assert!(!files.is_empty());
    for (name, outcome) in files {
        check(case, name, outcome);
    }
}

#[test]
fn broken_images() {
    check_case("01_broken_images");
}

#[test]
fn alpha_palette_grey() {
    check_case("03_alpha_palette_grey");
}

#[test]
fn exif_orientation() {
    check_case("05_exif_orientation");
}

#[test]
fn decompression_bombs() {
    check_case("07_decompression_bomb");
}

fn rejected(case: &str, name: &str) -> Reject {
    decode(&read(case, name), &DecodeOptions::default()).unwrap_err()
}

#[test]
fn messages_say_what_was_found() {
    let page = rejected("01_broken_images", "web_page.jpg");
    assert!(page.detail.contains("<!doctype html><title>404"), "{page}");
    let bomb = rejected("07_decompression_bomb", "real_900Mpx.png");
    assert!(bomb.detail.contains("900000000") && bomb.detail.contains("100000000"), "{bomb}");
    let cut = rejected("01_broken_images", "cut_half.jpg");
    assert!(cut.detail.contains("row"), "{cut}");
}

#[test]
fn exif_can_be_left_alone() {
    let opts = DecodeOptions { exif: false, ..DecodeOptions::default() };
    let picture = decode(&read("05_exif_orientation", "o6.jpg"), &opts).unwrap();
    assert_eq!((picture.width, picture.height), (64, 96));
}
