//! `kill -9` at any moment of a save leaves a snapshot that loads, at least as new as the last one acknowledged.
#![cfg(unix)]
mod snapshot_support;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
    thread::sleep,
    time::Duration,
};

use ocelli_train::snapshot::{SnapshotName, latest, load, prune, save};
use snapshot_support::*;
use tempfile::tempdir;

/// Elements of the saved tensor: 2 MB, so that a kill often falls into the writing.
const EXTRA: usize = 500_000;

/// The child: saves until it is killed, saying after each save which step is on disk.
fn save_in_a_loop(dir: &Path) {
    let first: u64 = std::env::var("OCELLI_TEST_FIRST").unwrap().parse().unwrap();
    for step in first.. {
        // Every other save replaces a file, the rest make new ones.
        let name = if step % 2 == 0 {
            SnapshotName::end_of_epoch(9_000_000)
        } else {
            SnapshotName::within_epoch(9_000_000, step)
        };
        save(&dir.join(name.to_string()), &small(step, EXTRA)).unwrap();
        prune(dir, 3, "run-1").unwrap();
        println!("saved {step}");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_the_last_one_loadable() {
    if let Some(dir) = child_dir() {
        return save_in_a_loop(&dir);
    }
    let dir = tempdir().unwrap();
    let mut first = 0;
    let mut leftovers = 0;
    for round in 0..20u64 {
        let acknowledged = run_and_kill(dir.path(), first, Duration::from_micros(round * 1_700 + 100));
        let search = latest(dir.path()).unwrap();
        assert!(search.refused.is_empty(), "{:?}", search.refused);
        let mut newest = 0;
        for entry in fs::read_dir(dir.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if SnapshotName::parse(&name).is_none() {
                leftovers += 1;
                assert!(name.ends_with(".tmp"), "{name}");
                fs::remove_file(entry.path()).unwrap();
                continue;
            }
            let snapshot = load(&entry.path()).unwrap();
            let step = snapshot.meta.optim_step;
            let expected = small(step, EXTRA);
            assert!(expected.tensors.iter().all(|t| snapshot.tensor(&t.name) == Some(t)), "step {step}");
            newest = newest.max(step);
        }
        assert!(newest >= acknowledged, "round {round}: step {acknowledged} was saved, {newest} is there");
        first = newest + 1;
    }
    assert!(leftovers > 0, "no kill fell into a save: the test shows nothing");
}

/// Starts the child, waits for one save and then `delay`, kills it; returns the last step that it said was saved.
fn run_and_kill(dir: &Path, first: u64, delay: Duration) -> u64 {
    let mut command = child("a_kill_at_any_moment_leaves_the_last_one_loadable", dir);
    let mut process =
        command.env("OCELLI_TEST_FIRST", first.to_string()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let step_of = |line: String| line.split("saved ").nth(1).and_then(|s| s.parse::<u64>().ok());
    let mut last = lines.by_ref().find_map(step_of).expect("the child saves");
    sleep(delay);
    process.kill().unwrap();
    for step in lines.filter_map(step_of) {
        last = step;
    }
    process.wait().unwrap();
    last
}
