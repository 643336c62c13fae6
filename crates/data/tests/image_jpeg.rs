//! JPEG against Pillow's pixels (those of libjpeg-turbo), which ours equal: every sampling, baseline and progressive, at
//! sizes that end inside blocks. `make_jpeg_fixtures.py` made the files.

mod image_common;

use std::collections::BTreeMap;

use image_common::{marker, patched, read};
use ocelli_data::image::{DecodeOptions, Rgb, decode, scaled};

fn open(name: &str) -> Rgb {
    decode(&read(&format!("edges/{name}")), &DecodeOptions::default())
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn every_sampling_at_every_edge_is_decoded_to_the_bit() {
    let expected: BTreeMap<String, (u32, u32, u32)> =
        serde_json::from_slice(&read("edges/expected.json")).unwrap();
    assert!(expected.len() > 80, "{}", expected.len());
    let mut sums = Vec::new();
    for (name, wanted) in &expected {
        let found = open(&format!("{name}.jpg"));
        assert_eq!((found.width, found.height, crc32fast::hash(&found.pixels)), *wanted, "{name}");
        sums.push(wanted.2);
    }
    // The comparison can fail: pictures that are alike but for their sampling differ.
    sums.sort_unstable();
    sums.dedup();
    assert!(sums.len() > 40, "{}", sums.len());
}

/// Odd and damaged files: what Pillow reads is read, to the same pixels, and what it refuses is refused.
/// `make_jpeg_oddities.py` made them.
#[test]
fn odd_files_are_what_they_are_to_pillow() {
    let expected: BTreeMap<String, Option<(u32, u32, u32)>> =
        serde_json::from_slice(&read("odd/expected.json")).unwrap();
    assert!(expected.len() > 150 && expected.values().filter(|wanted| wanted.is_none()).count() > 20);
    let different: Vec<String> = expected
        .iter()
        .filter_map(|(name, wanted)| {
            let found = decode(&read(&format!("odd/{name}.jpg")), &DecodeOptions::default());
            let seen = found.as_ref().ok().map(|p| (p.width, p.height, crc32fast::hash(&p.pixels)));
            (seen != *wanted).then(|| format!("{name}: {:?}", found.map(|p| p.warnings)))
        })
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Scans that are missing before the end marker, and gaps between restart markers, are told of.
#[test]
fn what_is_incomplete_is_told() {
    for (name, incomplete) in [
        ("9_scans_of_progressive", true),
        ("10_scans_of_progressive", false),
        ("restarts_without_interval_1", true),
        ("restarts_second_is_5", false),
    ] {
        let picture = decode(&read(&format!("odd/{name}.jpg")), &DecodeOptions::default()).unwrap();
        let words: Vec<_> = picture.warnings.words().collect();
        assert_eq!(words == ["incomplete"], incomplete, "{name}: {words:?}");
    }
}

/// Pillow shows these, filled up with grey: to us they are cut.
#[test]
fn files_that_end_before_the_picture_does_are_refused_though_pillow_reads_them() {
    let file = read("edges/90x100_444.jpg");
    let half = [&file[..file.len() / 2], b"\xff\xd9"].concat();
    let parts = read("edges/apart_444.jpg");
    let scans: Vec<usize> = (0..parts.len() - 1).filter(|at| parts[*at..].starts_with(b"\xff\xda")).collect();
    let tables = parts[..scans[1]].windows(2).rposition(|w| w == b"\xff\xdb").unwrap();
    let grey = [&parts[..tables], b"\xff\xd9"].concat();
    for (what, bytes) in [("half", half), ("without colours", grey)] {
        let reject = decode(&bytes, &DecodeOptions::default()).unwrap_err();
        assert_eq!(reject.reason, "truncated", "{what}: {reject}");
    }
}

/// Frames of motion JPEG have no Huffman tables: the standard's are meant.
#[test]
fn a_file_without_huffman_tables_has_those_of_the_standard() {
    let whole = read("jpeg/baseline_420.jpg");
    let mut bare = whole[..2].to_vec();
    let mut at = 2;
    while whole[at + 1] != 0xda {
        let end = at + 2 + usize::from(u16::from_be_bytes([whole[at + 2], whole[at + 3]]));
        if whole[at + 1] != 0xc4 {
            bare.extend(&whole[at..end]);
        }
        at = end;
    }
    bare.extend(&whole[at..]);
    assert_eq!(
        whole.len() - bare.len(),
        4 * 4 + 416,
        "the fixture has the standard's tables, each in a segment"
    );
    let options = DecodeOptions::default();
    assert!(decode(&bare, &options).unwrap().pixels == decode(&whole, &options).unwrap().pixels);
}

/// Scaling follows: up and down, the bound that holds for every picture holds here.
#[test]
fn scaled_pictures_are_those_of_pillow() {
    for name in ["90x100_420_progressive", "98x70_422", "50x50_411"] {
        for size in [32, 224] {
            let wanted = open(&format!("{name}_{size}.png"));
            let found = scaled(&open(&format!("{name}.jpg")), size).unwrap();
            let differences = || found.iter().zip(&wanted.pixels).map(|(a, b)| a.abs_diff(*b));
            let mean = differences().map(f64::from).sum::<f64>() / found.len() as f64;
            let worst = differences().max().unwrap();
            assert!(worst <= 1 && mean <= 0.2, "{name} to {size}: largest {worst}, mean {mean:.3}");
        }
    }
}

#[test]
fn components_of_broken_ratios_are_named() {
    // 3 x 1 samples beside 2 x 1: no encoder writes that, and libjpeg does not read it.
    let file = read("edges/50x50_422.jpg");
    let at = marker(&file, 0xc0) + 11;
    let reject = decode(&patched(&file, at, &[0x31, 0, 2, 0x21]), &DecodeOptions::default()).unwrap_err();
    assert_eq!(reject.reason, "unsupported_format");
    assert!(reject.detail.contains("ratio") && reject.detail.contains("convert"), "{reject}");
}
