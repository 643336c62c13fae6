//! Damaged, hostile and foreign files are refused with the reason, never with a panic.
mod snapshot_support;

use std::{fs, path::Path};

use ocelli_train::snapshot::{Damage, SnapshotError, load, load_weights_only, peek, verify};
use proptest::prelude::*;
use snapshot_support::*;
use tempfile::tempdir;

/// The error of loading these bytes as a file of that name.
fn refusal(dir: &Path, name: &str, bytes: &[u8]) -> SnapshotError {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    match load(&path) {
        Ok(_) => panic!("{name} was accepted"),
        Err(error) => {
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error} does not name the file");
            error
        }
    }
}

fn case(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshot_cases").join(name)).unwrap()
}

#[test]
fn a_cut_at_any_place_is_refused() {
    let dir = tempdir().unwrap();
    let (_, whole) = saved(dir.path(), "whole.safetensors", 1);
    for length in 0..whole.len() {
        let error = refusal(dir.path(), "cut.safetensors", &whole[..length]);
        assert!(matches!(error, SnapshotError::Damaged { .. }), "cut to {length}: {error}");
    }
    let error = refusal(dir.path(), "cut.safetensors", &whole[..whole.len() - 50]);
    let text = error.to_string();
    let (wanted, found) =
        (format!("{} bytes wanted", whole.len()), format!("{} bytes found", whole.len() - 50));
    assert!(text.contains(&wanted) && text.contains(&found), "{text}");
}

#[test]
fn a_flipped_bit_in_any_byte_is_refused() {
    let dir = tempdir().unwrap();
    let (_, whole) = saved(dir.path(), "whole.safetensors", 1);
    let mut by_checksum = 0;
    // Bit 5 turns a letter's case, which some parsers do not mind.
    for (at, bit) in (0..whole.len()).flat_map(|at| [(at, 5), (at, at % 5)]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        let error = refusal(dir.path(), "flipped.safetensors", &bytes);
        by_checksum +=
            u32::from(matches!(error, SnapshotError::Damaged { damage: Damage::Checksum { .. }, .. }));
    }
    assert!(by_checksum > 500, "most flips leave a valid file: only the checksum finds them ({by_checksum})");
}

#[test]
fn appended_bytes_are_refused() {
    let dir = tempdir().unwrap();
    let (_, mut bytes) = saved(dir.path(), "whole.safetensors", 1);
    bytes.push(0);
    let error = refusal(dir.path(), "long.safetensors", &bytes);
    assert!(matches!(error, SnapshotError::Damaged { damage: Damage::Trailing { .. }, .. }), "{error}");
}

#[test]
fn nan_and_infinity_name_the_tensor() {
    let dir = tempdir().unwrap();
    let (_, whole) = saved(dir.path(), "whole.safetensors", 1);
    for (value, name) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "Inf")] {
        let error = refusal(dir.path(), "nan.safetensors", &with_first_float(&whole, value));
        let text = error.to_string();
        assert!(text.contains(&format!("tensor `big` holds {name} at element 0")), "{text}");
        assert!(text.contains("checksum does not match") && text.contains("earlier snapshot"), "{text}");
    }
}

#[test]
fn the_collected_hostile_files_are_refused_with_their_reason() {
    let dir = tempdir().unwrap();
    for (name, parts) in [
        ("huge_header.safetensors", &["header claims 1152921504606846976 bytes", "has 10"][..]),
        (
            "offsets_past_end.safetensors",
            &["offsets point past its end", "4171 bytes wanted", "331 bytes found"],
        ),
        ("nan_weights.safetensors", &["tensor `w` holds NaN at element 0", "earlier snapshot"]),
        ("hostile.pt", &["a pickle", "untrusted format", "scripts/pt_to_safetensors.py"]),
    ] {
        let text = refusal(dir.path(), name, &case(name)).to_string();
        for part in parts {
            assert!(text.contains(part), "{part} not in: {text}");
        }
        assert!(load_weights_only(&dir.path().join(name)).is_err(), "{name}");
    }
    assert!(!Path::new("PICKLE_RAN").exists());
}

#[test]
fn pickles_are_recognised_under_any_name() {
    let dir = tempdir().unwrap();
    let zip = [b"PK\x03\x04\x14\0\x08\x08".as_slice(), &[0; 200]].concat();
    let legacy = [b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.".as_slice(), &[b'.'; 200]].concat();
    for (name, bytes) in [
        ("a.pt", &zip),
        ("01_snapshot.safetensors", &zip),
        ("b", &legacy),
        ("c.pth", &b"cos\nsystem\n".to_vec()),
    ] {
        let error = refusal(dir.path(), name, bytes);
        assert!(matches!(error, SnapshotError::Pickle { .. }), "{name}: {error}");
    }
    // A valid file may begin with the same two bytes as a pickle: here a header of 0x0280 bytes.
    let header = format!("{:<width$}", "{}", width = 0x0280);
    let error = refusal(dir.path(), "empty.safetensors", &raw_file(&header, b""));
    assert!(matches!(error, SnapshotError::Foreign { .. }), "{error}");
}

#[test]
fn contradictory_headers_are_refused() {
    let dir = tempdir().unwrap();
    let two = |first: &str, second: &str| {
        format!(
            r#"{{"a":{{"dtype":"F32","shape":[1],"data_offsets":{first}}},"a":{{"dtype":"F32","shape":[1],"data_offsets":{second}}}}}"#
        )
    };
    for (header, bytes, part) in [
        (two("[0,4]", "[4,8]"), 8, "`a` appears twice"),
        (two("[0,4]", "[0,4]"), 4, "`a` appears twice"),
        (two("[0,4]", "[2,6]").replacen("\"a\"", "\"b\"", 1), 6, "offset"),
        (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#.into(), 4, ""),
        (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#.into(), 0, ""),
        (r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,4]}}"#.into(), 4, ""),
        (r#"{"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}}"#.into(), 4, "Q7"),
        (r#"{"__metadata__":{},"__metadata__":{}}"#.into(), 0, "appears twice"),
        (r#"{"__metadata__":{"ocelli":"{}"}}"#.into(), 0, "format"),
        (r#"{"__metadata__":{"ocelli":"{\"format\":1}"}}"#.into(), 0, "checksum is missing"),
        ("{\"a\":".into(), 0, ""),
    ] {
        let error = refusal(dir.path(), "odd.safetensors", &raw_file(&header, &vec![0; bytes]));
        let text = error.to_string();
        assert!(matches!(error, SnapshotError::Damaged { .. }) && text.contains(part), "{header}: {text}");
    }
}

#[test]
fn what_never_was_a_safetensors_file_is_not_called_damaged() {
    let dir = tempdir().unwrap();
    for (bytes, part) in [
        (b"Notes on the run of Monday".to_vec(), "the text \"Notes on the run of Mond\""),
        (b"short".to_vec(), "the text \"short\""),
        (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec(), "the bytes 89 50 4e 47"),
        (raw_file("[]", b""), "the bytes 02 00"),
    ] {
        let error = refusal(dir.path(), "01_snapshot.safetensors", &bytes);
        let text = error.to_string();
        assert!(matches!(error, SnapshotError::NotSafetensors { .. }) && text.contains(part), "{text}");
        assert!(text.contains("_snapshot.safetensors") && text.contains("init_from"), "{text}");
    }
}

#[test]
fn what_is_not_a_file_is_refused() {
    let dir = tempdir().unwrap();
    for path in [dir.path().to_path_buf(), dir.path().join("absent"), "/dev/zero".into()] {
        let error = load(&path).unwrap_err();
        assert!(matches!(error, SnapshotError::Read { .. }), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let dir = tempdir().unwrap();
        refusal(dir.path(), "r.safetensors", &bytes);
    }

    #[test]
    fn random_headers_never_panic(
        claimed in prop_oneof![Just(None), any::<u64>().prop_map(Some), (0u64..300).prop_map(Some)],
        header in r#"\{("(a|b|__metadata__)":(\{("(dtype|shape|data_offsets|ocelli)":("F32"|"U8"|\[[0-9]{1,20}(,[0-9]{1,20}){0,2}\]|"\{\}")(,|)){0,3}\}|[0-9]|null)(,|)){0,3}\}"#,
        data in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let dir = tempdir().unwrap();
        let path = dir.path().join("r.safetensors");
        let mut bytes = raw_file(&header, &data);
        if let Some(n) = claimed {
            bytes[..8].copy_from_slice(&n.to_le_bytes());
        }
        fs::write(&path, bytes).unwrap();
        prop_assert!(load(&path).is_err() && verify(&path).is_err() && peek(&path).is_err());
        // May be valid weights: only a panic would be wrong.
        let _ = load_weights_only(&path);
    }

    #[test]
    fn several_changed_bytes_are_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..5),
    ) {
        let dir = tempdir().unwrap();
        let (_, whole) = saved(dir.path(), "whole.safetensors", 1);
        let mut bytes = whole.clone();
        for (at, change) in changes {
            let at = at.index(bytes.len());
            bytes[at] ^= change;
        }
        prop_assume!(bytes != whole);
        refusal(dir.path(), "changed.safetensors", &bytes);
    }
}
