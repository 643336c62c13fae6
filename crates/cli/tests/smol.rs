//! The architecture `smol` through the real binary: it learns, captions, goes on to the bit, and says what it reads.

mod support;

use support::{Bench, tensors, with};

const SMOL: &[&str] = &["model_config.architecture=smol", "model_config.n_kv_head=1"];

#[test]
fn a_small_model_learns_to_caption() {
    let b = Bench::new();
    let args = ["train", "--config-name", "shapes_smol", "trainer_config.max_iters=160"];
    let small = [
        "model_config.image_embed_dim=24",
        "model_config.n_embd=24",
        "model_config.n_layer=1",
        "model_config.num_blks=1",
        "trainer_config.train_batch_size=16",
        "trainer_config.warmup_iters=10",
        "trainer_config.lr=1e-2",
        "data_config.val_samples=64",
    ];
    b.run(&with(&args, &small)).done().mentions(&["true:", "model:"]);
    let losses: Vec<f64> = (b.log("metrics.jsonl").iter())
        .filter(|line| line["kind"] == "validation")
        .map(|line| line["loss"].as_f64().unwrap())
        .collect();
    // Chance is the logarithm of some 25 characters; how often each occurs alone gives about 2.7.
    let last = losses.last().unwrap();
    assert!(*last < 1.0, "{losses:?}");
    let snapshot = b.snapshots()[0].to_str().unwrap().to_string();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    let caption = b.run(&["caption", "--snapshot", &snapshot, picture]).done().out;
    assert!(caption.trim().len() > 5, "{caption}");
    assert_eq!(b.run(&["caption", "--snapshot", &snapshot, picture]).done().out, caption);
}

/// Twenty steps are ten, a snapshot, and ten more, to the bit.
#[test]
fn resume_is_exact() {
    let common = with(SMOL, &["data_config.train_samples=21", "trainer_config.epochs=9"]);
    let straight = Bench::new();
    straight.train(&with(&common, &["trainer_config.max_iters=20"])).done();
    let broken = Bench::new();
    broken.train(&with(&common, &["trainer_config.max_iters=10"])).done();
    let snapshot = broken.snapshots().last().unwrap().to_str().unwrap().to_string();
    broken.train(&with(&common, &["trainer_config.max_iters=20", "--resume", &snapshot])).done();
    let [want, have] = [&straight, &broken].map(|b| tensors(b.snapshots().last().unwrap()));
    assert!(want.keys().any(|name| name == "model.text_model.embed_tokens.weight"), "{:?}", want.keys());
    assert!(want == have);
}

#[test]
fn keys_of_the_other_architecture_are_named() {
    let b = Bench::new();
    let dry = |args: &[&str]| b.train(&with(args, &["trainer_config.max_iters=1"])).done();
    dry(&with(SMOL, &["model_config.dropout=0.5"])).mentions(&[
        "without effect on model_config.architecture=smol: model_config.dropout; seemore reads them",
    ]);
    dry(&["model_config.n_kv_head=1"]).mentions(&[
        "without effect on model_config.architecture=seemore: model_config.n_kv_head; smol reads them",
    ]);
}

#[test]
fn sizes_that_do_not_go_together_are_refused() {
    let b = Bench::new();
    let refused = |key: &str, parts: &[&str]| {
        b.train(&with(&["model_config.architecture=smol"], &[key])).refused(parts);
    };
    refused("model_config.n_kv_head=3", &["n_head 2 is not a multiple of n_kv_head 3"]);
    refused("model_config.image_n_head=3", &["image_embed_dim 16 is not a multiple of image_n_head 3"]);
    refused("model_config.n_head=16", &["n_embd 16 / n_head 16 is 1"]);
    refused("model_config.pixel_shuffle=3", &["pixel_shuffle 3 does not divide the 2 patches"]);
    refused("model_config.rope_theta=0.5", &["rope_theta 0.5 is below 1"]);
    assert!(!b.path("runs").exists());
}

#[test]
fn weights_of_the_other_architecture_or_of_other_sizes_are_refused() {
    let b = Bench::new();
    b.train(&with(SMOL, &["trainer_config.max_iters=1"])).done();
    let snapshot = b.snapshots()[0].to_str().unwrap().to_string();
    let other = ["--resume", &snapshot, "model_config.architecture=seemore"];
    b.train(&other).refused(&["model_config.architecture was \"smol\", is \"seemore\""]);
    let from = format!("model_config.init_from={snapshot}");
    b.train(&[&from]).refused(&[&snapshot]);
    let wider = with(SMOL, &[&from, "model_config.n_inner=64"]);
    b.train(&wider).refused(&["model_config.n_inner is 64 here, 48 in the file"]);
    // The shapes do not tell the number of heads, but the snapshot does.
    let heads = with(SMOL, &[&from, "model_config.n_head=1"]);
    b.train(&heads).refused(&[
        "model_config.n_embd / n_head * n_kv_head is 16 here, 8 in the file",
        "model_config.n_head was 2, is 1",
    ]);
    for (key, said) in [
        ("model_config.rope_theta=500", "model_config.rope_theta was 10000.0, is 500.0"),
        ("model_config.tie_weights=false", "model_config.tie_weights was true, is false"),
        ("model_config.n_head=1", "model_config.n_head was 2, is 1"),
    ] {
        b.run(&["eval", "--snapshot", &snapshot, key]).refused(&["trained in another model", said]);
    }
    b.run(&["eval", "--snapshot", &snapshot]).done();
}

#[test]
fn narrow_numbers_train_it_too() {
    for dtype in ["bf16", "fp16"] {
        let b = Bench::new();
        let amp = format!("trainer_config.amp_dtype={dtype}");
        b.train(&with(SMOL, &["trainer_config.max_iters=6", "trainer_config.use_amp=true", &amp])).done();
        let loss = b.summary()["validation_loss"].as_f64().unwrap();
        assert!(loss > 0.0 && loss < 6.0, "{dtype}: {loss}");
    }
}
