//! File names of snapshots: `{epoch:02d}_snapshot.safetensors` at the end of an epoch,
//! `{epoch:02d}_{step:07d}_snapshot.safetensors` within one.
//!
//! Invariant: a name parses only if printing it gives the same name again, so a name has one meaning.
use std::{cmp::Ordering, fmt};

const ENDING: &str = "_snapshot.safetensors";

/// What a snapshot's file name says. Ordered by age: within an epoch by step, its end last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotName {
    /// The epoch in progress, or the one that ended.
    pub epoch: u64,
    /// Optimiser step of the whole run; `None` at the end of an epoch.
    pub step: Option<u64>,
}

impl SnapshotName {
    /// The name at the end of an epoch.
    pub fn end_of_epoch(epoch: u64) -> Self {
        SnapshotName { epoch, step: None }
    }

    /// The name within an epoch, after that many optimiser steps of the whole run.
    pub fn within_epoch(epoch: u64, step: u64) -> Self {
        SnapshotName { epoch, step: Some(step) }
    }

    /// Reads a file name; `None` for anything that is not a snapshot's name.
    pub fn parse(file_name: &str) -> Option<Self> {
        let stem = file_name.strip_suffix(ENDING)?;
        let name = match stem.split_once('_') {
            Some((epoch, step)) => SnapshotName::within_epoch(epoch.parse().ok()?, step.parse().ok()?),
            None => SnapshotName::end_of_epoch(stem.parse().ok()?),
        };
        (name.to_string() == file_name).then_some(name)
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "{:02}_{step:07}{ENDING}", self.epoch),
            None => write!(f, "{:02}{ENDING}", self.epoch),
        }
    }
}

impl Ord for SnapshotName {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |n: &Self| (n.epoch, n.step.is_none(), n.step);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for SnapshotName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_as_published_and_parse_back() {
        for (name, text) in [
            (SnapshotName::end_of_epoch(1), "01_snapshot.safetensors"),
            (SnapshotName::end_of_epoch(123), "123_snapshot.safetensors"),
            (SnapshotName::within_epoch(0, 150), "00_0000150_snapshot.safetensors"),
            (SnapshotName::within_epoch(7, 12_345_678), "07_12345678_snapshot.safetensors"),
        ] {
            assert_eq!(name.to_string(), text);
            assert_eq!(SnapshotName::parse(text), Some(name));
        }
    }

    #[test]
    fn other_names_do_not_parse() {
        for text in [
            "1_snapshot.safetensors",
            "001_snapshot.safetensors",
            "01_150_snapshot.safetensors",
            "+1_snapshot.safetensors",
            "01_snapshot.safetensors.tmp",
            ".01_snapshot.safetensors.ocelli-1-0.tmp",
            "01_snapshot.pt",
            "_snapshot.safetensors",
            "01_0000001_0000002_snapshot.safetensors",
            "99999999999999999999999_snapshot.safetensors",
            "best.pt",
            "notes.txt",
        ] {
            assert_eq!(SnapshotName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_end_of_an_epoch_is_its_newest() {
        let ordered = [
            SnapshotName::within_epoch(0, 5),
            SnapshotName::within_epoch(0, 10_000_000),
            SnapshotName::end_of_epoch(0),
            SnapshotName::within_epoch(1, 7),
            SnapshotName::end_of_epoch(100),
        ];
        assert!(ordered.is_sorted());
    }
}
