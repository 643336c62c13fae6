//! JPEG against Pillow's pixels (those of libjpeg-turbo), which ours equal: every sampling, baseline and progressive, at
//! sizes that end inside blocks. `make_jpeg_fixtures.py` made the files.

mod image_common;

use std::collections::BTreeMap;

use image_common::{marker, patched, read};
use ocelli_data::image::{DecodeOptions, Rgb, decode, resize};

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
            let found = resize(&open(&format!("{name}.jpg")), size).unwrap();
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
