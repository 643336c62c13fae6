//! How runs end before their time, or have nothing left to do, through the real binary.

mod support;

use serde_json::json;
use support::Bench;

#[test]
fn the_metrics_end_with_a_summary() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=3"]).done();
    let s = b.summary();
    assert_eq!((&s["ended"], &s["steps"], &s["new_steps"]), (&json!("done"), &json!(3), &json!(3)));
    assert_eq!((&s["samples"], &s["skipped"], &s["truncated"]), (&json!(12), &json!({}), &json!(0)));
    assert!(s["seconds"].as_f64().unwrap() > 0.0 && s["validation_loss"].as_f64().unwrap() > 0.0, "{s}");
}

#[test]
fn a_finished_run_is_shown_again_without_a_new_folder() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=3"]).done();
    let run = b.run_folder();
    let before = std::fs::read(run.join("metrics.jsonl")).unwrap();
    let resume = |more: &[&str]| b.run(&[&["train", "--resume", run.to_str().unwrap()], more].concat());
    let said = resume(&[]).done().mentions(&[
        "nothing to train: of the 3 steps asked for, the snapshot ",
        "00_0000003_snapshot.safetensors has all of them (3). To go on, raise trainer_config.max_iters",
        "Validation Loss after step 3: ",
        "model: ",
        "done: 3 steps, none of them new",
    ]);
    assert!(!said.out.contains("trainer_config.epochs") && !said.out.contains("run folder"), "{}", said.out);
    resume(&["trainer_config.max_iters=2"]).done().mentions(&["of the 2 steps asked for", "has more (3)"]);
    assert_eq!(b.run_folder(), run, "no other run folder");
    assert_eq!(std::fs::read(run.join("metrics.jsonl")).unwrap(), before);
    resume(&["trainer_config.max_iters=4"]).done().mentions(&["done: 4 steps, 4 samples"]);
}

#[test]
fn a_run_with_all_its_epochs_says_which_key_to_raise() {
    let b = Bench::new();
    let args = ["data_config.train_samples=8", "trainer_config.max_iters=null", "trainer_config.epochs=2"];
    b.train(&args).done();
    let run = b.run_folder();
    let said = b.run(&["train", "--resume", run.to_str().unwrap()]).done();
    said.mentions(&["has all of them (4). To go on, raise trainer_config.epochs"]);
}

/// Sent while the model is made: long before its first step.
#[cfg(unix)]
#[test]
fn an_interrupt_before_the_first_step_has_nothing_to_save() {
    use std::io::{BufRead, BufReader, Read};
    let b = Bench::new();
    let sizes = ["model_config.n_embd=192", "model_config.n_layer=6"];
    let mut command = b.command(&[&["train"], &sizes[..]].concat());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("rows: ") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0);
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(rest.ends_with("\ninterrupted before the first step: nothing to save\n"), "{rest}");
    assert!(b.snapshots().is_empty());
    assert_eq!(b.summary()["ended"], "interrupted");
}

/// The limit on the size of a file is between that of a snapshot and what a long run's metrics grow to.
#[cfg(target_os = "linux")]
#[test]
fn metrics_that_cannot_be_written_end_the_run_and_name_the_last_snapshot() {
    let b = Bench::new();
    let args = [
        "model_config.n_embd=8",
        "model_config.image_embed_dim=8",
        "model_config.max_positions=32",
        "data_config.max_seq_length=8",
        "trainer_config.train_batch_size=1",
        "trainer_config.max_iters=100000",
        "trainer_config.snapshot_interval=200",
        "trainer_config.keep_last=2",
    ];
    let inner = b.command(&support::tiny(&args));
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(b.dir.path())
        .output()
        .unwrap();
    let said = support::said(output).refused(&["metrics.jsonl: File too large", "ulimit -f"]);
    let last = b.snapshots().pop().unwrap();
    let name = last.strip_prefix(b.dir.path()).unwrap().to_str().unwrap();
    assert!(said.err.contains(&format!("The newest snapshot is {name}")), "{}", said.err);
    let goal = ["train", "--resume", name, "trainer_config.max_iters=1"];
    b.run(&goal).done().mentions(&["nothing to train"]);
}
