//! The newest snapshot of a config over all its runs: what `snapshot_load_strategy: latest` resumes from.
//!
//! Invariant: within a folder, names say which snapshot is newer; between folders, the time of saving that stands in
//! the snapshots themselves. File times are never asked: a copy would change them.
use std::path::{Path, PathBuf};

use super::{RunDirError, runs};
use crate::snapshot::{self, Search, SnapshotError};

/// The newest whole snapshot of `config_name`: in each snapshot folder that its runs under `root` used, and in
/// `snapshot_dir` if that is absolute, the newest whole one; among these, the one saved last.
///
/// Newer ones that were refused are in the result, to be shown as warnings.
///
/// # Errors
/// [`SnapshotError::NonFinite`] if the newest snapshot's numbers are not finite; it names the next older whole one.
/// [`RunDirError`] if a folder cannot be listed.
pub fn latest_run_with_snapshot(
    root: &Path,
    config_name: &str,
    snapshot_dir: &Path,
) -> Result<Search, RunDirError> {
    let mut best = Search::default();
    let mut refused = Vec::new();
    let mut diverged: Option<(u64, SnapshotError)> = None;
    for dir in folders(root, config_name, snapshot_dir)? {
        match snapshot::latest_of_config(&dir, config_name) {
            Ok(mut search) => {
                refused.append(&mut search.refused);
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
    best.refused = refused;
    Ok(best)
}

/// The distinct folders that may hold snapshots of this config.
fn folders(root: &Path, config_name: &str, snapshot_dir: &Path) -> Result<Vec<PathBuf>, RunDirError> {
    let own = runs(root)?.into_iter().filter(|run| run.info.config_name == config_name);
    let mut dirs: Vec<PathBuf> = own.map(|run| run.snapshot_dir()).collect();
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
