//! A folder or a device in the place of a snapshot or a file, through the real binary.

mod support;

use support::{Bench, Said};

/// The command lines that take a snapshot.
fn all(b: &Bench, snapshot: &str) -> Vec<Said> {
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    let lines: [&[&str]; 4] = [
        &["caption", "--snapshot", snapshot, picture],
        &["eval", "--snapshot", snapshot],
        &["export", "--snapshot", snapshot, "--out", "w.safetensors"],
        &["train", "--resume", snapshot],
    ];
    lines.iter().map(|line| b.run(line)).collect()
}

#[test]
fn a_folder_without_a_snapshot_is_said_to_be_one() {
    let b = Bench::new();
    std::fs::create_dir(b.path("photos")).unwrap();
    for said in all(&b, "photos") {
        let said = said.refused(&["error: photos: there is no snapshot in this folder. Wanted is"]);
        assert!(!said.err.contains("cannot go on"), "{}", said.err);
    }
}

#[test]
fn a_folder_of_runs_names_them_newest_first() {
    let b = Bench::new();
    for name in ["old", "new"] {
        b.train(&["trainer_config.max_iters=1"]).done();
        std::fs::rename(b.run_folder(), b.path(name)).unwrap();
        std::fs::remove_dir(b.path("runs")).unwrap();
    }
    std::fs::create_dir_all(b.path("all/notes")).unwrap();
    for (from, to) in [("new", "all/a"), ("old", "all/b")] {
        std::fs::rename(b.path(from), b.path(to)).unwrap();
    }
    std::fs::create_dir_all(b.path("all/c/snapshots")).unwrap();
    let list = "such as the newest, all/a. There are, newest first:\n  all/a\n  all/b\n  all/c\n";
    for said in all(&b, "all") {
        said.refused(&["error: all: this is a folder of runs: name one of them", list]);
    }
    for said in all(&b, "all/c") {
        said.refused(&["error: all/c: this run has saved no snapshot"]);
    }
    b.run(&["train", "--resume", "all/a", "trainer_config.max_iters=2"]).done();
}

#[test]
fn a_snapshot_of_another_model_is_not_spoken_of_as_a_run() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=1"]).done();
    let run = b.run_folder();
    let said = b.run(&["eval", "--snapshot", run.to_str().unwrap(), "model_config.n_embd=32"]);
    let said = said.refused(&["snapshot.safetensors cannot be used: ", "n_embd"]);
    assert!(!said.err.contains("go on"), "{}", said.err);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_no_limit_on_files() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=1"]).done();
    let run = b.run_folder().display().to_string();
    let lines: [&[&str]; 3] = [
        &["export", "--snapshot", &run, "--out", "/dev/full"],
        &["eval", "--snapshot", &run, "--out", "/dev/full"],
        &["data", "show", "shapes", "--out", "/dev/full"],
    ];
    for line in lines {
        let said = b.run(line).refused(&["cannot write /dev/full: No space left on device", "choose a file"]);
        assert!(!said.err.contains("ulimit") && !said.err.contains("half-written"), "{}", said.err);
    }
}

/// Weights that the memory does not hold are no matter of the batch.
/// A large batch is a matter of a message too: making its program ready takes little memory.
#[cfg(target_os = "linux")]
#[test]
fn a_batch_too_large_for_the_memory_is_said_to_be_that() {
    let b = Bench::new();
    let inner = b.command(&support::tiny(&[
        "trainer_config.train_batch_size=65536",
        "model_config.n_embd=1024",
        "model_config.n_head=8",
        "trainer_config.threads=1",
        "trainer_config.max_iters=1",
    ]));
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 12000000; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(b.dir.path())
        .output()
        .unwrap();
    support::said(output).refused(&["cannot allocate ", "try a smaller trainer_config.train_batch_size"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_too_large_for_the_memory_is_said_to_be_that() {
    let b = Bench::new();
    let inner = b.command(&support::tiny(&[
        "model_config.n_embd=8192",
        "trainer_config.threads=1",
        "trainer_config.max_iters=1",
    ]));
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 400000; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(b.dir.path())
        .output()
        .unwrap();
    let said = support::said(output).refused(&[
        "cannot allocate ",
        "bytes for decoder.",
        "smaller model (model_config",
    ]);
    assert!(!said.err.contains("batch"), "{}", said.err);
}
