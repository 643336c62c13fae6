//! `ocelli train`, through the real binary.

mod support;

use std::time::{Duration, Instant};
use support::{Bench, said, tensors};

#[test]
fn a_run_leaves_a_folder_with_config_metrics_and_a_snapshot() {
    let b = Bench::new();
    let said = b.train(&["trainer_config.max_iters=7", "trainer_config.log_interval=3"]).done();
    said.mentions(&[
        "step 3/7",
        "images/s",
        "ms/step",
        "data wait",
        "ETA",
        "Validation Loss",
        "true:",
        "model:",
        "done: 7 steps",
    ]);
    let run = b.run_folder();
    assert!(run.file_name().unwrap().to_string_lossy().starts_with("shapes-"));
    let config = std::fs::read_to_string(run.join("config.yaml")).unwrap();
    assert!(config.contains("image_embed_dim: 16"), "{config}");
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = metrics.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let steps: Vec<u64> =
        lines.iter().filter(|l| l["kind"] == "step").map(|l| l["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, (1..=7).collect::<Vec<_>>());
    assert!(lines.iter().any(|l| l["kind"] == "validation" && l["loss"].as_f64().unwrap() > 0.0));
    assert_eq!(b.snapshots().len(), 1);
    assert!(b.snapshots()[0].ends_with("snapshots/00_0000007_snapshot.safetensors"));
}

#[test]
fn verbose_lines_are_the_published_ones() {
    let b = Bench::new();
    let said = b.train(&["trainer_config.max_iters=2", "trainer_config.log_verbose=true"]).done();
    assert!(said.out.contains("[rank 0] epoch 0, step 1, dt: "), "{}", said.out);
    assert!(said.out.contains(" ms"), "{}", said.out);
}

#[test]
fn the_printed_configuration_can_be_run() {
    let b = Bench::new();
    let text = b.train(&["--print-config", "trainer_config.max_iters=2"]).done().out;
    assert!(!b.path("runs").exists());
    std::fs::write(b.path("mine.yaml"), text).unwrap();
    b.run(&["train", "--config-name", "mine.yaml"]).done().mentions(&["done: 2 steps"]);
    assert!(b.run_folder().file_name().unwrap().to_string_lossy().starts_with("mine-"));
}

#[test]
fn a_sweep_runs_each_combination() {
    let b = Bench::new();
    let args = ["-m", "trainer_config.max_iters=2", "trainer_config.lr=1e-3,1e-4", "trainer_config.seed=1,2"];
    b.train(&args).done().mentions(&["run 4 of 4"]);
    assert_eq!(b.snapshots().len(), 4);
}

#[test]
fn bad_input_is_refused_before_anything_is_made() {
    let b = Bench::new();
    b.train(&["trainer_config.lrr=1"]).refused(&["trainer_config.lrr", "trainer_config.lr"]);
    b.train(&["model_config.n_head=3"]).refused(&["n_head", "16", "3"]);
    b.train(&["trainer_config.max_iters=0"]).refused(&["max_iters"]);
    b.run(&["train", "--config-name", "nowhere"]).refused(&["nowhere"]);
    b.run(&["train", "--config-name", "coco_train"]).refused(&["coco is not there yet"]);
    b.train(&["--resume", "nothing.safetensors"]).refused(&["nothing.safetensors"]);
    b.train(&["model_config.init_from=nothing.safetensors"]).refused(&["nothing.safetensors"]);
    assert_eq!(b.run(&["train", "--no-such-flag"]).code, Some(2));
    assert!(!b.path("runs").exists(), "a run that cannot start leaves no folder");
}

/// 2N steps equal N steps, kill -9, resume, N more: all of the state, bit for bit, dropout and a partial last
/// batch included.
#[test]
fn resume_after_a_kill_is_exact() {
    let common = [
        "data_config.train_samples=21",
        "model_config.dropout=0.2",
        "model_config.emb_dropout=0.1",
        "model_config.blk_dropout=0.1",
        "trainer_config.epochs=100",
        "trainer_config.max_iters=40",
        "trainer_config.lr_schedule=cosine",
        "trainer_config.snapshot_interval=4",
        "trainer_config.sample_captions=0",
    ];
    let straight = Bench::new();
    straight.train(&common).done();
    let want = tensors(straight.snapshots().last().unwrap());

    let broken = Bench::new();
    let mut child = broken.start(&common);
    let deadline = Instant::now() + Duration::from_secs(60);
    while broken.snapshots().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = broken.snapshots().len();
    let resumed =
        [&common[..], &["trainer_config.snapshot_load_strategy=latest", "trainer_config.threads=1"]].concat();
    let said = broken.train(&resumed).done();
    if before < 10 {
        said.mentions(&["going on from"]);
    }
    let have = tensors(broken.snapshots().last().unwrap());
    assert_eq!(want.keys().collect::<Vec<_>>(), have.keys().collect::<Vec<_>>());
    for (name, bytes) in &want {
        assert!(have[name] == *bytes, "{name} differs");
    }
}

#[test]
fn resume_by_path_takes_the_snapshots_own_configuration() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=3"]).done();
    let snapshot = b.snapshots()[0].clone();
    let path = snapshot.to_str().unwrap();
    b.run(&["train", "--resume", path]).done().mentions(&["nothing to train"]);
    b.run(&["train", "--resume", path, "trainer_config.max_iters=5"])
        .done()
        .mentions(&["step 3", "done: 5 steps"]);
    b.run(&["train", "--resume", path, "trainer_config.seed=9"]).refused(&["seed=1337", "has 9"]);
    b.run(&["train", "--resume", path, "model_config.n_embd=32"]).refused(&["sizes"]);
    // Weights alone, for another run.
    let init = format!("model_config.init_from={path}");
    b.train(&["trainer_config.max_iters=1", &init]).done().mentions(&["weights: "]);
    b.train(&[&init, "model_config.n_embd=32"]).refused(&["sizes"]);
}

#[test]
fn epochs_see_every_row_and_save_at_their_end() {
    let b = Bench::new();
    let args = ["data_config.train_samples=10", "trainer_config.epochs=2", "trainer_config.max_iters=null"];
    b.train(&args).done().mentions(&[
        "Validation Loss after epoch 0",
        "Validation Loss after epoch 1",
        "done: 6 steps, 20 samples",
    ]);
    let names: Vec<String> =
        b.snapshots().iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["00_snapshot.safetensors", "01_snapshot.safetensors"]);
    let by_epoch = [&args[..], &["trainer_config.snapshot_load_strategy=0"]].concat();
    b.train(&by_epoch)
        .done()
        .mentions(&["00_snapshot.safetensors (step 3, epoch 1)", "done: 6 steps, 10 samples"]);
    let missing = [&args[..], &["trainer_config.snapshot_load_strategy=7"]].concat();
    b.train(&missing).refused(&["07_snapshot"]);
}

#[test]
fn a_newer_damaged_snapshot_is_refused_by_name_and_the_one_before_is_taken() {
    let b = Bench::new();
    let args = ["trainer_config.max_iters=8", "trainer_config.snapshot_interval=4"];
    b.train(&args).done();
    let newest = b.snapshots().last().unwrap().clone();
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &bytes[..bytes.len() - 50]).unwrap();
    let folder = newest.parent().unwrap();
    std::fs::write(folder.join("00_0000009_snapshot.safetensors.tmp"), b"half").unwrap();
    std::fs::write(folder.join("best.pt"), b"PK").unwrap();
    let latest = [&args[..], &["trainer_config.snapshot_load_strategy=latest"]].concat();
    b.train(&latest).done().mentions(&["warning: ", "00_0000008", "00_0000004_snapshot.safetensors (step 4"]);
    b.run(&["train", "--resume", newest.to_str().unwrap()]).refused(&["00_0000008"]);
}

#[cfg(unix)]
#[test]
fn interrupt_saves_and_ends_cleanly() {
    let b = Bench::new();
    let child = b.start(&["trainer_config.max_iters=1000000"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let started = || {
        std::fs::read_dir(b.path("runs"))
            .is_ok_and(|mut d| d.any(|r| r.is_ok_and(|r| r.path().join("metrics.jsonl").exists())))
    };
    while !started() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let said = said(child.wait_with_output().unwrap()).done();
    assert!(said.out.contains("interrupted and saved"), "{}", said.out);
    assert_eq!(b.snapshots().len(), 1);
    b.run(&["train", "--resume", b.snapshots()[0].to_str().unwrap(), "trainer_config.max_iters=1"]).done();
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_is_never_saved() {
    let b = Bench::new();
    let args = [
        "trainer_config.lr=1e18",
        "trainer_config.clip_grad_norm=null",
        "trainer_config.max_iters=200",
        "trainer_config.lr_schedule=constant",
        "trainer_config.warmup_iters=0",
    ];
    b.train(&args).refused(&["the loss became", "at step", "trainer_config.lr"]);
    assert!(b.snapshots().is_empty());
}
