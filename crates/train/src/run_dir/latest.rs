//! The newest snapshot of a config over all its runs: what `snapshot_load_strategy` resumes from.
//!
//! Invariant: within a folder, names say which snapshot is newer; between folders, the time of saving that stands in
//! the snapshots themselves. File times are never asked: a copy would change them.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{RunDir, RunDirError, folders};
use crate::snapshot::{self, Meta, Search, SnapshotError, SnapshotName, Verdict};

/// The newest whole snapshot of `config_name` that fits, among those whose names are `wanted`: in each snapshot folder that its runs under `root` used, and
/// in `snapshot_dir` if that is absolute, the newest whole one that fits; among these, the one saved last. `judge` says
/// of each whether it fits, and if not, what differs.
///
/// Newer ones that were refused or do not fit are in the result, to be shown.
///
/// # Errors
/// [`SnapshotError::NonFinite`] if the newest snapshot's numbers are not finite; it names the next older whole one.
/// [`RunDirError`] if a folder cannot be listed.
pub fn latest_run_with(
    root: &Path,
    config_name: &str,
    snapshot_dir: &Path,
    wanted: &dyn Fn(SnapshotName) -> bool,
    judge: &dyn Fn(&Meta) -> Result<(), String>,
) -> Result<Search, RunDirError> {
    let verdict = |meta: &Meta| match judge(meta) {
        _ if meta.config_name != config_name => Verdict::Other,
        Ok(()) => Verdict::Fits,
        Err(differences) => Verdict::Differs(differences),
    };
    let mut best = Search::default();
    let (mut refused, mut passed) = (Vec::new(), Vec::new());
    let mut diverged: Option<(u64, SnapshotError)> = None;
    for dir in snapshot_folders(root, config_name, snapshot_dir)? {
        match snapshot::latest_that(&dir, wanted, verdict) {
            Ok(mut search) => {
                refused.append(&mut search.refused);
                passed.append(&mut search.passed);
                if saved(&search) > saved(&best) {
                    best = search;
                }
            }
            Err(error @ SnapshotError::NonFinite { .. }) => {
                let time = time_of(&error);
                if diverged.as_ref().is_none_or(|(other, _)| time > *other) {
                    diverged = Some((time, error));
                }
            }
            Err(other) => return Err(other.into()),
        }
    }
    if let Some((time, error)) = diverged
        && Some(time) > saved(&best)
    {
        return Err(with_earlier(error, best.found.map(|f| f.path)).into());
    }
    passed.retain(|p| Some(p.saved_unix_ms) > saved(&best));
    passed.sort_by_key(|p| std::cmp::Reverse(p.saved_unix_ms));
    (best.refused, best.passed) = (refused, passed);
    Ok(best)
}

/// The distinct folders that may hold snapshots of this config, in no order.
///
/// # Errors
/// [`RunDirError::List`] if `root` cannot be listed.
pub fn snapshot_folders(
    root: &Path,
    config_name: &str,
    snapshot_dir: &Path,
) -> Result<Vec<PathBuf>, RunDirError> {
    let mut dirs = Vec::new();
    for path in folders(root)? {
        match RunDir::open(&path) {
            Some(run) if run.info.config_name == config_name => dirs.push(run.snapshot_dir()),
            Some(_) => {}
            // Its `run.json` is gone or damaged: the snapshots themselves say whose they are.
            None => dirs.extend(unmarked(&path, snapshot_dir)?),
        }
    }
    if snapshot_dir.is_absolute() {
        // Each run has a folder in it; runs under another root are found there too.
        let inside = std::fs::read_dir(snapshot_dir).into_iter().flatten().flatten().map(|e| e.path());
        dirs.extend(inside.filter(|p| p.is_dir()));
        dirs.push(snapshot_dir.to_path_buf());
    }
    dirs.sort();
    dirs.dedup();
    Ok(dirs)
}

/// The folder of snapshots in a folder that may be a run's.
fn unmarked(path: &Path, snapshot_dir: &Path) -> Result<Option<PathBuf>, RunDirError> {
    let dir = path.join(snapshot_dir);
    match std::fs::metadata(&dir) {
        // What may not be looked into is no reason to start anew in silence.
        Err(source) if source.kind() == ErrorKind::PermissionDenied => {
            Err(RunDirError::List { path: path.to_path_buf(), source })
        }
        found => Ok(found.is_ok_and(|m| m.is_dir() && snapshot_dir.is_relative()).then_some(dir)),
    }
}

fn saved(search: &Search) -> Option<u64> {
    search.found.as_ref().map(|f| f.meta.saved_unix_ms)
}

/// When the snapshot that an error speaks of was saved; 0 if it is not one of ours.
fn time_of(error: &SnapshotError) -> u64 {
    match error {
        SnapshotError::NonFinite { path, .. } => snapshot::peek(path).map_or(0, |m| m.saved_unix_ms),
        _ => 0,
    }
}

/// Suggests another folder's snapshot if the error's own folder has none.
fn with_earlier(error: SnapshotError, other: Option<PathBuf>) -> SnapshotError {
    match error {
        SnapshotError::NonFinite { path, tensor, index, value, changed, earlier } => {
            SnapshotError::NonFinite { path, tensor, index, value, changed, earlier: earlier.or(other) }
        }
        error => error,
    }
}
