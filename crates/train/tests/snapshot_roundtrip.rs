//! What is saved comes back bit for bit; what could not be resumed is not saved; other files are told apart.
mod snapshot_support;

use std::{borrow::Cow, fs};

use ocelli_train::snapshot::{
    DType, FORMAT, Snapshot, SnapshotError, Spec, Tensor, load, load_weights_only, peek, save, verify,
};
use proptest::prelude::*;
use snapshot_support::*;
use tempfile::tempdir;

#[test]
fn a_snapshot_comes_back_bit_for_bit() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("new/folder/01_snapshot.safetensors");
    let snapshot = small(7, 300_000);
    let written = save(&path, &snapshot).unwrap();
    let back = load(&path).unwrap();
    assert_eq!(back.meta, written);
    assert_eq!((back.meta.format, back.meta.ocelli_version.as_str()), (FORMAT, env!("CARGO_PKG_VERSION")));
    assert!(back.meta.saved_unix_ms > 1_700_000_000_000);
    assert_eq!(back.meta.metrics.keys().collect::<Vec<_>>(), ["val_loss"]);
    assert_eq!(back.tensors.len(), snapshot.tensors.len());
    for tensor in &snapshot.tensors {
        assert_eq!(back.tensor(&tensor.name), Some(tensor));
    }
    let meta_but_stamps =
        |m: &ocelli_train::snapshot::Meta| (m.config.clone(), m.tokenizer.clone(), m.seed, m.data_step);
    assert_eq!(meta_but_stamps(&back.meta), meta_but_stamps(&snapshot.meta));
    assert_eq!(verify(&path).unwrap(), written);
    assert_eq!(peek(&path).unwrap(), written);
    assert_eq!(back.tensor("adam.step").unwrap().to_u32(), Some(vec![7]));
    assert_eq!(back.tensor("vit.w").unwrap().to_f32().unwrap()[1], 7.5);
    assert_eq!(back.tensor("mask").unwrap().to_f32(), None);
}

#[test]
fn another_safetensors_reader_agrees() {
    let dir = tempdir().unwrap();
    let (_, bytes) = saved(dir.path(), "s.safetensors", 3);
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let snapshot = small(3, 8);
    assert_eq!(file.len(), snapshot.tensors.len());
    for tensor in &snapshot.tensors {
        let view = file.tensor(&tensor.name).unwrap();
        assert_eq!((view.shape(), view.data()), (&tensor.shape[..], &tensor.bytes[..]));
    }
}

#[test]
fn an_impossible_state_is_not_saved_and_the_old_file_stays() {
    let dir = tempdir().unwrap();
    let (path, before) = saved(dir.path(), "s.safetensors", 1);
    let data = [1.0f32, 2.0];
    let diverged = [1.0f32, f32::NAN];
    let short = Tensor { name: "a".into(), dtype: DType::F32, shape: vec![3], bytes: Cow::Borrowed(&[0; 8]) };
    let huge = Tensor { shape: vec![usize::MAX, 2], ..short.clone() };
    let cases = [
        (vec![Tensor::from_f32("a", &[2], &data), Tensor::from_f32("a", &[2], &data)], "`a` is used twice"),
        (vec![Tensor::from_f32("__metadata__", &[2], &data)], "reserved"),
        (vec![short], "F32 [3] has 8 bytes"),
        (vec![huge], "has 8 bytes"),
        (vec![Tensor::from_f32("w", &[2], &diverged)], "`w` holds NaN at element 1"),
    ];
    for (tensors, part) in cases {
        let error = save(&path, &Snapshot { tensors, meta: meta(2) }).unwrap_err();
        assert!(matches!(error, SnapshotError::Invalid { .. }), "{error}");
        assert!(error.to_string().contains(part), "{part} not in {error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.safetensors");
    let header = r#"{"__metadata__":{"ocelli":"{\"format\":2,\"ocelli_version\":\"9.1.0\",\"other\":[]}"}}"#;
    fs::write(&path, raw_file(header, b"")).unwrap();
    let error = load(&path).unwrap_err();
    assert!(matches!(error, SnapshotError::Newer { found: 2, supported: FORMAT, .. }), "{error}");
    assert!(error.to_string().contains("9.1.0"), "{error}");
}

#[test]
fn a_foreign_file_gives_its_weights_but_is_no_snapshot() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("published.safetensors");
    let header = r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"ids":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}}"#;
    let data = [1.5f32.to_le_bytes(), (-2.0f32).to_le_bytes(), [0; 4], [0; 4]].concat();
    fs::write(&path, raw_file(header, &data)).unwrap();
    let error = load(&path).unwrap_err();
    assert!(matches!(error, SnapshotError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("model_config.init_from="), "{error}");
    let weights = load_weights_only(&path).unwrap();
    assert_eq!(weights.skipped, ["ids"]);
    assert_eq!((weights.tensors.len(), weights.tensors[0].to_f32()), (1, Some(vec![1.5, -2.0])));
}

#[test]
fn weights_come_from_our_own_snapshots_too_and_in_float32_only() {
    let dir = tempdir().unwrap();
    let (path, _) = saved(dir.path(), "s.safetensors", 3);
    let weights = load_weights_only(&path).unwrap();
    assert_eq!(weights.tensors.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["big", "none", "vit.w"]);
    let half = r#"{"w":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}"#;
    fs::write(&path, raw_file(half, &[0, 0])).unwrap();
    let error = load_weights_only(&path).unwrap_err().to_string();
    assert!(error.contains("`w` is BF16"), "{error}");
}

#[test]
fn a_layout_that_does_not_fit_says_where() {
    let snapshot = small(1, 8);
    let specs = snapshot.tensors.iter();
    let mut wanted: Vec<Spec> =
        specs.map(|t| Spec { name: t.name.clone(), dtype: t.dtype, shape: t.shape.clone() }).collect();
    snapshot.check_layout(&wanted).unwrap();
    wanted[0].shape = vec![3, 2];
    let error = snapshot.check_layout(&wanted).unwrap_err().to_string();
    assert!(error.contains("`vit.w` is F32 [2, 3] in the file, F32 [3, 2] in the model"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_names_and_texts_survive(
        names in prop::collection::btree_set("\\PC{0,12}", 1..6),
        config in "(?s).{0,80}",
        data in prop::collection::vec(any::<u32>(), 0..40),
    ) {
        prop_assume!(!names.contains("__metadata__"));
        let dir = tempdir().unwrap();
        let path = dir.path().join("s.safetensors");
        let tensors = names.iter().map(|n| Tensor::from_u32(n.as_str(), &[data.len()], &data)).collect();
        let snapshot = Snapshot { tensors, meta: ocelli_train::snapshot::Meta { config, ..meta(1) } };
        save(&path, &snapshot).unwrap();
        let back = load(&path).unwrap();
        prop_assert_eq!(&back.meta.config, &snapshot.meta.config);
        prop_assert_eq!(back.tensors, snapshot.tensors);
    }
}
