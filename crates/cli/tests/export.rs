//! `ocelli export`, through the real binary.

mod support;

use std::collections::BTreeMap;
use support::{Bench, tensors};

/// Names and shapes of the weights in PyTorch (`scripts/check_export.py --names`).
fn golden() -> BTreeMap<String, Vec<usize>> {
    let line = |l: &str| {
        let mut parts = l.split(' ');
        (parts.next().unwrap().to_owned(), parts.map(|n| n.parse().unwrap()).collect())
    };
    include_str!("torch_names.txt").lines().map(line).collect()
}

fn trained(b: &Bench) -> String {
    b.train(&["trainer_config.max_iters=2"]).done();
    b.snapshots()[0].to_str().unwrap().to_owned()
}

#[test]
fn weights_have_pytorchs_names_and_come_back() {
    let b = Bench::new();
    let snapshot = trained(&b);
    let run = b.run_folder();
    let said =
        b.run(&["export", "--snapshot", run.to_str().unwrap(), "--out", "new/weights.safetensors"]).done();
    let written = b.path("new/weights.safetensors");
    let bytes = std::fs::read(&written).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let shapes: BTreeMap<_, _> = file.iter().map(|(n, t)| (n.to_owned(), t.shape().to_vec())).collect();
    assert_eq!(shapes, golden());
    assert!(file.iter().all(|(_, t)| t.dtype() == safetensors::Dtype::F32));
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let about = header.metadata().as_ref().unwrap();
    let sizes: serde_json::Value = serde_json::from_str(&about["model_config"]).unwrap();
    assert_eq!((&*about["format"], &sizes["n_embd"], &sizes["vocab_size"]), ("pt", &16.into(), &26.into()));
    assert!(
        about["tokenizer"].contains("circle") || about["tokenizer"].contains('c'),
        "{}",
        about["tokenizer"]
    );
    let weights: usize = golden().values().map(|s| s.iter().product::<usize>()).sum();
    let line = format!("new/weights.safetensors: {} tensors, {weights} weights", shapes.len());
    said.mentions(&[&line, "warning: the blocks of this model are not the published ones", "pre_norm"]);
    // The bits are the snapshot's, and start new training.
    let (kept, out) = (tensors(std::path::Path::new(&snapshot)), tensors(&written));
    assert!(out.iter().all(|(name, bytes)| kept[name] == *bytes));
    let from = ["model_config.init_from=new/weights.safetensors", "trainer_config.max_iters=1"];
    let said = b.train(&from).done().mentions(&[&format!("weights: {} tensors from new/", shapes.len())]);
    assert!(!said.out.contains("not used"), "{}", said.out);
}

#[test]
fn the_published_blocks_export_without_a_warning() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=1", "model_config.residual=published"]).done();
    let run = b.run_folder();
    let args =
        ["export", "--to", "torch-names", "--snapshot", run.to_str().unwrap(), "--out", "w.safetensors"];
    assert_eq!(b.run(&args).done().err, "");
}

#[test]
fn what_cannot_be_exported_is_said() {
    let b = Bench::new();
    let snapshot = trained(&b);
    let export = |from: &str, to: &str| b.run(&["export", "--snapshot", from, "--out", to]);
    let before = std::fs::read(&snapshot).unwrap();
    export(&snapshot, &snapshot).refused(&["is the snapshot itself"]);
    assert_eq!(std::fs::read(&snapshot).unwrap(), before);
    export("nowhere", "w.safetensors").refused(&["nowhere"]);
    export(&snapshot, ".").refused(&["cannot write", "is not a file"]);
    export(&snapshot, "w.safetensors").done();
    // Weights alone are no snapshot.
    export("w.safetensors", "v.safetensors").refused(&["w.safetensors"]);
    let said = b.run(&["export", "--snapshot", &snapshot, "--out", "w", "--to", "onnx"]);
    assert_eq!(said.code, Some(2));
    said.mentions(&["torch-names"]);
}
