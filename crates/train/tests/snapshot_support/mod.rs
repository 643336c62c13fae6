//! What the snapshot tests share: a small state, raw edits of files, and children of the test binary.
#![allow(dead_code)] // Each test binary uses a part.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use ocelli_train::snapshot::{DType, Meta, Snapshot, Tensor, save};

/// A snapshot whose tensors all depend on `step`, with `extra` more float32 elements.
pub fn small(step: u64, extra: usize) -> Snapshot<'static> {
    let f32s = |n: usize| (0..n).map(|i| (i as f32).mul_add(0.5, step as f32)).collect::<Vec<_>>();
    let tensor = |name: &str, dtype, shape: &[usize], bytes: Vec<u8>| Tensor {
        name: name.into(),
        dtype,
        shape: shape.to_vec(),
        bytes: bytes.into(),
    };
    Snapshot {
        tensors: vec![
            tensor("vit.w", DType::F32, &[2, 3], cast(&f32s(6))),
            tensor("adam.step", DType::U32, &[], (step as u32).to_le_bytes().to_vec()),
            tensor("mask", DType::U8, &[3], vec![1, 0, 1]),
            tensor("none", DType::F32, &[0, 4], vec![]),
            tensor("big", DType::F32, &[extra], cast(&f32s(extra))),
        ],
        meta: meta(step),
    }
}

/// A meta with every kind of field in use.
pub fn meta(step: u64) -> Meta {
    Meta {
        run_id: "run-1".into(),
        config_name: "tiny".into(),
        config: "a: \"1\"\nb: \\ { }\n".into(),
        tokenizer: "{\"ä\":\"ocelli_crc32c\"}".into(),
        epoch: 1,
        optim_step: step,
        data_step: step + 1,
        position: "{\"epoch\":1}".into(),
        seed: u64::MAX,
        source_fingerprint: "abc".into(),
        sizes: [("n_embd".to_string(), 128)].into(),
        metrics: [("val_loss".to_string(), 0.5), ("broken".to_string(), f64::NAN)].into(),
        ..Meta::default()
    }
}

fn cast(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Saves a small snapshot and returns its path and bytes.
pub fn saved(dir: &Path, name: &str, step: u64) -> (PathBuf, Vec<u8>) {
    let path = dir.join(name);
    save(&path, &small(step, 8)).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

/// A safetensors file from a header and data, as they are.
pub fn raw_file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// Sets one element of the first float32 tensor of a saved small snapshot (its data begins with `big`).
pub fn with_first_float(bytes: &[u8], value: f32) -> Vec<u8> {
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut out = bytes.to_vec();
    out[8 + header..8 + header + 4].copy_from_slice(&value.to_le_bytes());
    out
}

/// A command that runs only the test `name` of this binary, with `dir` in the environment: the test then plays the
/// child's part. Its output must be captured, or its result line would be counted with the parent's.
pub fn child(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(CHILD_DIR, dir);
    command
}

/// The folder that a child is to work in; `None` in the parent.
pub fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD_DIR).map(PathBuf::from)
}

/// Set for children only.
pub const CHILD_DIR: &str = "OCELLI_TEST_CHILD_DIR";
