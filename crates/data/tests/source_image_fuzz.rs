//! Mutated pictures: whatever the bytes, `decode` answers; it never panics, and what it accepts is whole.

use std::path::PathBuf;
use std::sync::LazyLock;

use ocelli_data::image::{AlphaMode, DecodeOptions, decode, resize};
use proptest::prelude::*;

/// Real files of every kind.
static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folders = [
        "jpeg",
        "resize",
        "cases/01_broken_images",
        "cases/03_alpha_palette_grey",
        "cases/05_exif_orientation",
    ];
    let mut paths: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(tests.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
});

/// A change at a place given as a share of the file's length.
#[derive(Clone, Debug)]
enum Change {
    Set(f64, u8),
    Flip(f64, u8),
    Cut(f64),
    Remove(f64, usize),
    Repeat(f64, usize),
    Insert(f64, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let place = 0.0..1.0f64;
    prop_oneof![
        3 => (place.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        3 => (place.clone(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        1 => place.clone().prop_map(Change::Cut),
        1 => (place.clone(), 1..40usize).prop_map(|(at, n)| Change::Remove(at, n)),
        1 => (place.clone(), 1..40usize).prop_map(|(at, n)| Change::Repeat(at, n)),
        1 => (place, prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, b)| Change::Insert(at, b)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: Change) {
    let place = |share: f64| (share * bytes.len() as f64) as usize;
    match change {
        Change::Set(at, byte) => {
            let at = place(at);
            if let Some(b) = bytes.get_mut(at) {
                *b = byte;
            }
        }
        Change::Flip(at, bit) => {
            let at = place(at);
            if let Some(b) = bytes.get_mut(at) {
                *b ^= 1 << bit;
            }
        }
        Change::Cut(at) => bytes.truncate(place(at)),
        Change::Remove(at, n) => {
            let at = place(at);
            bytes.drain(at..(at + n).min(bytes.len()));
        }
        Change::Repeat(at, n) => {
            let at = place(at);
            let copy = bytes[at..(at + n).min(bytes.len())].to_vec();
            bytes.splice(at..at, copy);
        }
        Change::Insert(at, new) => {
            let at = place(at);
            bytes.splice(at..at, new);
        }
    }
}

/// Makes the checksums of a PNG right again, so that a change reaches the decoder behind them.
fn mend_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(chunk) = bytes.get_mut(at + 4..(at + 12).saturating_add(length)) else { return };
        let (body, sum) = chunk.split_at_mut(4 + length);
        sum.copy_from_slice(&crc32fast::hash(body).to_be_bytes());
        at += 12 + length;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_pictures_never_panic(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
        (mend, drop_alpha) in any::<(bool, bool)>(),
    ) {
        let mut bytes = file.get(&FILES).clone();
        for change in changes {
            apply(&mut bytes, change);
        }
        if mend && bytes.starts_with(b"\x89PNG") {
            mend_checksums(&mut bytes);
        }
        let alpha = if drop_alpha { AlphaMode::Drop } else { AlphaMode::White };
        let opts = DecodeOptions { max_pixels: 1_000_000, alpha, exif: true };
        match decode(&bytes, &opts) {
            Ok(picture) => {
                let (width, height) = (picture.width as usize, picture.height as usize);
                prop_assert_eq!(picture.pixels.len(), width * height * 3);
                prop_assert!(width * height <= 1_000_000);
                prop_assert_eq!(resize(&picture, 16).unwrap().len(), 16 * 16 * 3);
            }
            Err(reject) => {
                prop_assert!(!reject.detail.is_empty());
                prop_assert!(!reject.detail.contains("gave up"), "the decoder panicked: {}", reject);
            }
        }
    }

    #[test]
    fn any_bytes_get_an_answer(
        head in prop::sample::select(vec![&b""[..], b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"GIF8"]),
        tail in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = [head, &tail[..]].concat();
        prop_assert!(decode(&bytes, &DecodeOptions::default()).is_err());
    }
}
