//! The cache of decoded pictures through the real binary: same steps, same skipped rows, with and without it, whatever the number of
//! threads, and after a resume.

#[path = "support/sources.rs"]
mod sources;
mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sources::{KINDS, Row, dataset};
use std::path::Path;
use support::{Bench, tiny, with};

/// Good and hostile rows.
fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/cases/00_mixed_run/train.csv");
    let mut reader = csv::Reader::from_path(path).unwrap();
    let records = reader.records().map(|r| r.unwrap()).map(|r| (r[1].to_owned(), r[2].to_owned()));
    let row = |(text, caption): (String, String)| Row {
        picture: STANDARD.decode(&text).unwrap_or_else(|_| text.into_bytes()),
        caption,
    };
    records.map(row).collect()
}

const RUN: &[&str] = &[
    "data_config.max_skip_ratio=1",
    "data_config.train_split_ratio=0.8",
    "trainer_config.epochs=2",
    "trainer_config.log_interval=1",
    "trainer_config.sample_captions=0",
    "data_config.unknown=replace",
];

/// What a run leaves, without what depends on time.
fn told(b: &Bench) -> (Vec<Value>, Vec<Value>) {
    let steps = |line: &Value| line["kind"] == "step" || line["kind"] == "validation";
    (b.log("metrics.jsonl").into_iter().filter(steps).collect(), b.log("skipped.jsonl"))
}

fn sorted(mut lines: Vec<Value>) -> Vec<String> {
    lines.drain(..).map(|l| l.to_string()).collect()
}

#[test]
fn runs_are_the_same_with_and_without_a_cache() {
    let all = rows();
    for kind in KINDS {
        let b = Bench::new();
        sources::write(&b, kind, &all);
        let path = format!("data_config.data_path={kind}");
        let data = with(&[dataset(kind), &path], RUN);
        let run = |more: &[&str]| {
            let _ = std::fs::remove_dir_all(b.path("runs"));
            let said = b.train(&with(&data, more)).done();
            let (steps, skipped) = told(&b);
            (sorted(steps), sorted(skipped), said.out)
        };
        let want = run(&["data_config.cache=off"]);
        assert!(want.0.len() > 4 && !want.1.is_empty(), "{kind}: {want:?}");
        for workers in ["0", "1", "8"] {
            let _ = std::fs::remove_file(b.path("c.pictures"));
            let workers = format!("data_config.num_workers={workers}");
            let more = ["data_config.cache=c.pictures", &workers];
            let (made, read) = (run(&more), run(&more));
            assert!(made.2.contains("c.pictures is made"), "{kind}: {}", made.2);
            assert!(read.2.contains("cache: c.pictures ("), "{kind}: {}", read.2);
            for (what, found) in [("made", made), ("read", read)] {
                assert_eq!((&found.0, &found.1), (&want.0, &want.1), "{kind}, {workers}, {what}");
            }
        }
        let left: Vec<_> = std::fs::read_dir(b.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().ends_with("making")), "{left:?}");
    }
}

#[test]
fn prepared_data_are_read_and_a_resume_goes_on_in_them() {
    let b = Bench::new();
    sources::write(&b, "rows.parquet", &rows());
    let source = ["data", "prepare", "rows.parquet", "--out", "p.bin", "--json", "model_config.img_size=16"];
    let made: Value = serde_json::from_str(&b.run(&source).done().out).unwrap();
    assert!(made["seconds"].is_number() && made["pictures"].as_u64() > Some(10), "{made}");
    let again: Value = serde_json::from_str(&b.run(&source).done().out).unwrap();
    assert!(again["seconds"].is_null() && again["bytes"] == made["bytes"], "{again}");
    let data = with(&["data_config.dataset=parquet", "data_config.data_path=rows.parquet"], RUN);
    let data = with(&data, &["trainer_config.snapshot_interval=1", "trainer_config.keep_last=null"]);
    let run = |more: &[&str]| {
        let _ = std::fs::remove_dir_all(b.path("runs"));
        b.train(&with(&data, more)).done();
        b.snapshots().pop().map(|p| support::tensors(&p)).unwrap()
    };
    let want = run(&["data_config.cache=off"]);
    assert!(run(&["data_config.cache=p.bin"]) == want, "other weights");
    // Half of it without a cache, the rest with one and other threads.
    let _ = std::fs::remove_dir_all(b.path("runs"));
    b.train(&with(&data, &["data_config.cache=off", "trainer_config.max_iters=3"])).done();
    let half = b.snapshots().pop().unwrap();
    let rest = ["--resume", half.to_str().unwrap(), "trainer_config.max_iters=null"];
    let rest = with(&rest, &["data_config.cache=p.bin", "data_config.num_workers=8"]);
    b.run(&tiny(&with(&data, &rest))).done();
    let last = b.snapshots().pop().unwrap();
    assert!(support::tensors(&last) == want, "a resume from the cache goes elsewhere");
}

#[test]
fn places_that_cannot_be_are_refused_and_nothing_is_lost() {
    let b = Bench::new();
    sources::write(&b, "rows.csv", &rows());
    std::fs::write(b.path("mine.txt"), "my notes").unwrap();
    let data = with(&["data_config.dataset=csv", "data_config.data_path=rows.csv"], RUN);
    let run = |place: &str| b.train(&with(&data, &[&format!("data_config.cache={place}")]));
    run("mine.txt").refused(&[
        "mine.txt",
        "is no cache of decoded pictures, and is not overwritten",
        "data_config.cache",
    ]);
    assert_eq!(std::fs::read_to_string(b.path("mine.txt")).unwrap(), "my notes");
    run("mine.txt/x").refused(&["mine.txt/x", "cannot write the cache", "or off"]);
    run("/dev/null").refused(&["/dev/null", "is not overwritten"]);
    // What is drawn is not kept.
    b.train(&["data_config.cache=c.pictures", "trainer_config.max_iters=1"]).refused(&["drawn"]);
    b.run(&["data", "prepare", "shapes", "--out", "c.pictures"]).refused(&["shapes", "pictures of files"]);
    assert!(!b.path("c.pictures").exists());
}

#[test]
#[cfg(unix)]
fn a_full_disk_ends_the_cache_and_not_the_run() {
    let b = Bench::new();
    sources::write(&b, "rows.csv", &rows());
    let data = with(&["data_config.dataset=csv", "data_config.data_path=rows.csv"], RUN);
    // Files are limited to 48 KiB: the logs and the snapshot of a tiny model fit, the pictures do not.
    let command = b.command(&tiny(&with(
        &data,
        &["data_config.cache=c.pictures", "trainer_config.snapshot_interval=1000"],
    )));
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let mut limited = std::process::Command::new("bash");
    limited.current_dir(b.dir.path()).args(["-c", "ulimit -f 48; exec \"$@\"", "x"]).args(words);
    let said = support::said(limited.output().unwrap());
    assert!(said.err.contains("c.pictures") && said.err.contains("is given up"), "{} {}", said.out, said.err);
    assert!(!b.path("c.pictures").exists());
}
