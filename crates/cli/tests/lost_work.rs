//! Runs that could lose what they learnt, or never learn anything, through the real binary.

#[path = "support/edit.rs"]
mod edit;
mod support;

use edit::edit;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use support::{Bench, Said, csv, said, tensors, tiny, with};

/// The published loss does not learn the first character, and there is no other.
#[test]
fn a_run_in_which_no_place_counts_ends_with_the_reason() {
    let finite = ["data_config.endless=false", "trainer_config.max_iters=null"];
    let lengths = ["data_config.max_seq_length=1", "model_config.max_positions=2"];
    for (more, length) in
        [(&[][..], lengths[0]), (&finite, lengths[1]), (&["trainer_config.grad_accum=3"], lengths[0])]
    {
        let b = Bench::new();
        let base = with(&csv(&b, 6, 0), &[length, "trainer_config.train_batch_size=2"]);
        let said = b.train(&with(&base, more)).refused(&[
            "in 6 samples drawn, no place of any caption counts for the loss",
            "data_config.loss=masked",
            "No caption is longer than 1 character here",
            "data_config.max_seq_length",
        ]);
        assert!(!said.out.contains("done"), "{}", said.out);
        assert!(b.snapshots().is_empty());
        assert_eq!(b.summary()["ended"], "no_weight");
    }
}

/// Runs that begin in one second, in folders of runs of their own and with one folder for snapshots.
#[test]
fn runs_of_one_second_share_no_snapshot_folder() {
    let b = Bench::new();
    let shared = format!("trainer_config.snapshot_dir={}", b.path("shared").display());
    let start = |i: usize| {
        b.start(&["trainer_config.max_iters=2", &shared, &format!("trainer_config.run_dir=runs{i}")])
    };
    let children: Vec<_> = (0..6).map(start).collect();
    children.into_iter().for_each(|c| drop(said(c.wait_with_output().unwrap()).done()));
    assert_eq!(b.snapshots().len(), 6);
    let mut names: Vec<_> =
        std::fs::read_dir(b.path("shared")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    for i in 0..6 {
        let run = std::fs::read_dir(b.path(&format!("runs{i}"))).unwrap().next().unwrap().unwrap();
        assert!(names.contains(&run.file_name()), "{names:?}");
    }
}

#[test]
fn a_snapshot_folder_outside_of_the_run_is_refused() {
    let b = Bench::new();
    for dir in ["..", "../shared", "a/../../b"] {
        let key = format!("trainer_config.snapshot_dir={dir}");
        b.train(&[&key]).refused(&["trainer_config.snapshot_dir", dir, "absolute", "override"]);
    }
    let file = "trainer_config.snapshot_dir=metrics.jsonl";
    b.train(&[file]).refused(&["snapshot_dir metrics.jsonl", "is a file of the run folder"]);
    assert!(!b.path("runs").exists());
}

/// Found before the first step, and nothing is left behind.
#[test]
fn a_snapshot_folder_that_cannot_be_written_is_found_before_the_first_step() {
    let b = Bench::new();
    std::fs::write(b.path("file"), "").unwrap();
    for dir in ["file", "file/inside"] {
        let key = format!("trainer_config.snapshot_dir={}", b.path(dir).display());
        let said = b.train(&[&key, "trainer_config.log_interval=1", "trainer_config.max_iters=3"]);
        let said = said.refused(&["trainer_config.snapshot_dir: cannot write", dir, "bytes needed"]);
        assert!(!said.out.contains("step 1/3"), "{}", said.out);
        assert!(!b.path("runs").exists());
    }
    b.train(&["trainer_config.run_dir=file"]).refused(&["trainer_config.run_dir: file is a file"]);
}

/// A run that went on is newer than what it went on from, whatever the clock said meanwhile.
#[test]
fn a_clock_that_went_back_does_not_make_latest_take_the_older_state() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2"]).done();
    let late = 9_000_000_000_000_u64;
    edit(&b.snapshots()[0], |meta| meta["saved_unix_ms"] = json!(late));
    let latest = "trainer_config.snapshot_load_strategy=latest";
    let go_on = |steps: &str| b.train(&[latest, &format!("trainer_config.max_iters={steps}")]).done();
    go_on("4").mentions(&["(step 2, epoch 0)"]);
    go_on("6").mentions(&["(step 4, epoch 0)"]);
    go_on("8").mentions(&["(step 6, epoch 0)"]);
}

/// A model whose snapshot is far smaller than the limit on the size of a file that `limited` sets.
const SMALL: [&str; 7] = [
    "model_config.n_embd=8",
    "model_config.image_embed_dim=8",
    "model_config.max_positions=32",
    "data_config.max_seq_length=8",
    "trainer_config.sample_captions=0",
    "trainer_config.log_interval=1",
    "data_config.max_skip_ratio=1",
];

/// A run that may write files of 100 kB.
fn limited(b: &Bench, args: &[&str]) -> Said {
    let inner = b.command(&tiny(args));
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\""]);
    shell.arg(inner.get_program()).args(inner.get_args()).current_dir(b.dir.path());
    said(shell.output().unwrap())
}

/// The step of the only snapshot, which the message names.
fn saved_step(b: &Bench, said: &Said) -> u64 {
    let [last] = &b.snapshots()[..] else { panic!("{:?}", b.snapshots()) };
    let name = last.strip_prefix(b.dir.path()).unwrap().to_str().unwrap();
    assert!(said.err.contains(&format!("The newest snapshot is {name}")), "{}", said.err);
    let file = Path::new(name).file_name().unwrap().to_str().unwrap();
    file.split('_').nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_takes_no_more_ends_the_run_after_it_is_saved() {
    let b = Bench::new();
    let more = ["trainer_config.train_batch_size=1", "trainer_config.max_iters=100000"];
    let said = limited(&b, &with(&SMALL, &more)).refused(&["metrics.jsonl: File too large", "ulimit -f"]);
    let text = std::fs::read_to_string(b.run_folder().join("metrics.jsonl")).unwrap();
    let steps = text.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    let logged = steps.filter_map(|l| l["step"].as_u64()).max().unwrap();
    let saved = saved_step(&b, &said);
    assert!(logged > 100 && saved >= logged, "{logged} steps were taken, {saved} are saved");
}

/// In the middle of a step of several batches: what is saved is the state between steps, and a resume goes on there.
#[cfg(target_os = "linux")]
#[test]
fn a_list_of_bad_rows_that_takes_no_more_does_so_too() {
    let b = Bench::new();
    let more = ["trainer_config.grad_accum=50", "data_config.endless=false", "trainer_config.max_iters=null"];
    let base = with(&csv(&b, 500, 1500), &with(&SMALL, &more));
    let said = limited(&b, &base).refused(&["skipped.jsonl: File too large"]);
    let step = saved_step(&b, &said);
    assert!(step > 0);
    let straight = Bench::new();
    let whole = with(&csv(&straight, 500, 1500), &with(&SMALL, &more));
    straight.train(&whole).done();
    let snapshot = b.snapshots().remove(0);
    let resume = ["train", "--resume", snapshot.to_str().unwrap()];
    b.run(&resume).done().mentions(&["skipped samples: "]);
    let last =
        |b: &Bench| tensors(b.snapshots().iter().find(|p| p.ends_with("00_snapshot.safetensors")).unwrap());
    assert!(last(&b) == last(&straight));
}

/// A step of a thousand batches takes seconds: Ctrl-C gives up what it has taken so far, and nothing is left of that.
#[test]
fn an_interrupt_within_a_long_step_does_not_wait_for_its_end() {
    let more = [
        "trainer_config.grad_accum=1000",
        "trainer_config.log_interval=1",
        "trainer_config.max_iters=2",
        "model_config.dropout=0.1",
        "trainer_config.sample_captions=0",
    ];
    let b = Bench::new();
    let child = b.start(&more);
    let said = b.interrupt(child).done().mentions(&["interrupted and saved: 1 step, 4000 samples"]);
    said.mentions(&[" GFLOP a batch, 1000 batches a step"]);
    let snapshots = b.snapshots();
    assert!(
        snapshots[0].ends_with("00_0000001_snapshot.safetensors") && snapshots.len() == 1,
        "{snapshots:?}"
    );
    let resume = ["train", "--resume", snapshots[0].to_str().unwrap(), "trainer_config.run_dir=more"];
    b.run(&resume).done();
    let straight = Bench::new();
    straight.train(&more).done();
    assert!(tensors(&straight.snapshots()[0]) == tensors(b.snapshots().last().unwrap()));
}

/// What stands in a snapshot is never trusted.
#[test]
fn a_position_that_cannot_be_is_refused_or_harmless() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2"]).done();
    let snapshot = b.snapshots().remove(0);
    let path = snapshot.to_str().unwrap();
    let resume =
        |more: &[&str]| b.run(&with(&["train", "--resume", path, "trainer_config.max_iters=3"], more));
    edit(&snapshot, |meta| meta["position"] = json!(r#"{"epoch":0,"batch":18446744073709551615}"#));
    resume(&["trainer_config.train_batch_size=8"]).refused(&[
        path,
        "position in the data",
        "batch 18446744073709551615 of 4 rows",
    ]);
    resume(&[]).done();
    edit(&snapshot, |meta| meta["tokenizer"] = json!("{}"));
    resume(&[]).refused(&[path, "the saved tokenizer cannot be used"]);
}

/// A run folder whose `run.json` is lost or damaged still has its snapshots, which say whose they are.
#[test]
fn latest_finds_the_snapshots_of_a_damaged_run_folder() {
    for damage in [Some("{"), None] {
        let b = Bench::new();
        b.train(&["trainer_config.max_iters=2"]).done();
        let mark = b.run_folder().join("run.json");
        match damage {
            Some(text) => std::fs::write(&mark, text).unwrap(),
            None => std::fs::remove_file(&mark).unwrap(),
        }
        let run = b.run_folder();
        b.train(&["trainer_config.max_iters=3", "trainer_config.snapshot_load_strategy=latest"])
            .done()
            .mentions(&["going on from", "step 2", "done: 3 steps"]);
        let resumed = ["train", "--resume", run.to_str().unwrap(), "trainer_config.max_iters=4"];
        b.run(&resumed).done().mentions(&["going on from"]);
    }
}

/// What a killed run left half-written goes when another goes on from its snapshots; what is young may be in use.
#[test]
fn leftovers_of_a_killed_run_are_removed_by_the_next() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2"]).done();
    let folder = b.snapshots()[0].parent().unwrap().to_path_buf();
    let leave = |name: &str, age: u64| {
        let file = std::fs::File::create(folder.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
    };
    leave(".00_0000001_snapshot.safetensors.ocelli-1-0.tmp", 100);
    leave(".00_0000002_snapshot.safetensors.ocelli-1-1.tmp", 5);
    b.train(&["trainer_config.max_iters=3", "trainer_config.snapshot_load_strategy=latest"]).done();
    let left = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.ends_with(".tmp")).collect();
    assert_eq!(left, [".00_0000002_snapshot.safetensors.ocelli-1-1.tmp"]);
}
