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
    b.run(&["train", "--resume", path, "trainer_config.seed=9"])
        .refused(&["trainer_config.seed was 1337, is 9"]);
    b.run(&["train", "--resume", path, "model_config.n_embd=32"])
        .refused(&["model_config.n_embd was 16, is 32"]);
    // Weights alone, for another run.
    let init = format!("model_config.init_from={path}");
    b.train(&["trainer_config.max_iters=1", &init]).done().mentions(&["weights: "]);
    b.train(&[&init, "model_config.n_embd=32"]).refused(&["model_config.n_embd is 32 here, 16 in the file"]);
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
    let said = b.train(&latest).done();
    assert!(said.err.contains("warning: ") && said.err.contains("00_0000008"), "{}", said.err);
    assert!(!said.out.contains("warning: "), "{}", said.out);
    assert!(said.out.contains("00_0000004_snapshot.safetensors (step 4"), "{}", said.out);
    b.run(&["train", "--resume", newest.to_str().unwrap()]).refused(&["00_0000008"]);
}

#[cfg(unix)]
#[test]
fn interrupt_saves_and_ends_cleanly() {
    let b = Bench::new();
    let child = b.start(&["trainer_config.max_iters=1000000"]);
    let said = b.interrupt(child).done();
    assert!(said.out.contains("interrupted and saved"), "{}", said.out);
    let hint = "ending as soon as the work in hand is done; press Ctrl-C again to end at once without saving";
    assert!(said.err.contains(hint), "{}", said.err);
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

#[test]
fn a_closed_output_does_not_stop_the_run() {
    use std::io::{BufRead, BufReader};
    let b = Bench::new();
    let mut child = b.start(&["trainer_config.max_iters=30", "trainer_config.log_interval=1"]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty());
    said(child.wait_with_output().unwrap()).done();
    assert_eq!(b.snapshots().len(), 1);
    // A closed standard error, with something to say there, does no harm either.
    let snapshots = b.snapshots()[0].parent().unwrap().to_path_buf();
    std::fs::write(snapshots.join("00_0000099_snapshot.safetensors"), b"damaged").unwrap();
    let path = snapshots.to_str().unwrap();
    let go_on = ["train", "--resume", path, "trainer_config.max_iters=32"];
    b.unread(&go_on, true).done().mentions(&["going on from", "done: 32 steps"]);
}

#[test]
fn numbers_that_32_bits_cannot_hold_are_refused_with_their_value() {
    let b = Bench::new();
    for (key, value) in [
        ("lr", "1e-50"),
        ("lr", "1e39"),
        ("eps", "1e-60"),
        ("beta1", "0.999999999"),
        ("beta2", "0.999999999"),
        ("weight_decay", "1e39"),
        ("max_iters", "16777217"),
        ("warmup_iters", "16777217"),
    ] {
        let change = format!("trainer_config.{key}={value}");
        b.train(&["--print-config", &change]).refused(&[&format!("trainer_config.{key}"), value]);
    }
    b.train(&["--print-config", "trainer_config.max_iters=16777216"]).done();
}

#[test]
fn a_resume_counts_the_steps_that_are_left() {
    let b = Bench::new();
    let args = |more: &[&'static str]| {
        [&["data_config.train_samples=40", "trainer_config.max_iters=null"][..], more].concat()
    };
    b.train(&args(&["trainer_config.epochs=1"])).done().mentions(&["done: 10 steps, 40 samples"]);
    let more = [
        "trainer_config.epochs=2",
        "trainer_config.train_batch_size=8",
        "trainer_config.snapshot_load_strategy=latest",
    ];
    let said = b.train(&args(&more)).done();
    let said = said.mentions(&[
        "changed since: trainer_config.train_batch_size was 4, is 8",
        "done: 15 steps, 40 samples",
    ]);
    // What the device settled is not what the user changed.
    assert!(!said.out.contains("use_amp"), "{}", said.out);
}

#[test]
fn a_resume_as_another_model_or_on_other_data_is_refused() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2"]).done();
    let run = b.run_folder();
    let resume = |change: &str| {
        b.run(&["train", "--resume", run.to_str().unwrap(), "trainer_config.max_iters=3", change])
    };
    resume("model_config.n_head=4").refused(&["model_config.n_head was 2, is 4", "init_from"]);
    resume("model_config.residual=published").refused(&["model_config.residual"]);
    resume("data_config.loss=published").refused(&["data_config.loss"]);
    resume("data_config.train_samples=100").refused(&["data_config.train_samples"]);
    resume("trainer_config.lr=1e-4").done().mentions(&["changed since: trainer_config.lr"]);
}

#[test]
fn runs_that_share_a_snapshot_folder_overwrite_nothing() {
    let b = Bench::new();
    let shared = b.path("shared");
    let folder = format!("trainer_config.snapshot_dir={}", shared.display());
    let args = ["data_config.train_samples=4", "trainer_config.max_iters=null", &folder];
    b.train(&args).done();
    b.train(&args).done();
    assert_eq!(b.snapshots().len(), 2);
    let latest = [&args[..], &["trainer_config.snapshot_load_strategy=latest"]].concat();
    b.train(&latest).done().mentions(&["going on from"]);
}

#[test]
fn a_run_folder_is_found_wherever_its_snapshots_lie() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2", "trainer_config.snapshot_dir=ckpt"]).done();
    let run = b.run_folder();
    assert!(run.join("ckpt").is_dir());
    b.run(&["train", "--resume", run.to_str().unwrap()])
        .done()
        .mentions(&["going on from", "nothing to train"]);
}

#[test]
fn keep_last_keeps_the_newest() {
    let b = Bench::new();
    b.train(&[
        "trainer_config.max_iters=9",
        "trainer_config.snapshot_interval=2",
        "trainer_config.keep_last=2",
    ])
    .done();
    let names: Vec<String> =
        b.snapshots().iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["00_0000008_snapshot.safetensors", "00_0000009_snapshot.safetensors"]);
}

/// The configuration that needs nothing but a clone of the project.
#[test]
fn csv_train_runs_from_the_projects_own_files() {
    let b = Bench::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for file in ["images/inputs.csv", "vocab.txt"] {
        std::fs::create_dir_all(b.path(file).parent().unwrap()).unwrap();
        std::fs::copy(format!("{root}/{file}"), b.path(file)).unwrap();
    }
    let said = b.train(&["--config-name", "csv_train", "trainer_config.max_iters=3"]).done();
    said.mentions(&[
        "csv images/inputs.csv (3 rows)",
        "2 to train on, 1 to validate on",
        "done: 3 steps, 12 samples",
    ]);
}
