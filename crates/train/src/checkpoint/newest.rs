//! The snapshot that a path names: a file, or the newest one of a folder of snapshots or of a run.

use super::origin::LISTED;
use crate::error::TrainError;
use crate::run_dir::RunDir;
use crate::snapshot::{self, SnapshotError};
use std::path::{Path, PathBuf};

/// Names looked at in a folder that is no run's.
const MOST: usize = 10_000;

/// A snapshot file as it is; the newest whole one of a snapshot folder or run folder, and the newer ones that
/// were refused.
///
/// # Errors
/// If there is none; the error tells why each one was refused, or which runs the folder holds.
pub fn newest_at(path: &Path) -> Result<(PathBuf, Vec<SnapshotError>), TrainError> {
    if !path.is_dir() {
        return Ok((path.to_path_buf(), vec![]));
    }
    let mut newer = Vec::new();
    for dir in [Some(path.to_path_buf()), of_run(path)].into_iter().flatten() {
        let search = snapshot::latest(&dir)?;
        match search.found {
            Some(found) => return Ok((found.path, search.refused)),
            None => newer.extend(search.refused),
        }
    }
    Err(TrainError::NoSnapshot { path: path.to_path_buf(), why: why(path, &newer) })
}

/// Where the snapshots of a run are, if `path` is its folder.
fn of_run(path: &Path) -> Option<PathBuf> {
    let inside = || Some(path.join("snapshots")).filter(|dir| dir.is_dir());
    RunDir::open(path).map(|run| run.snapshot_dir()).or_else(inside)
}

/// What the folder is instead of one with a whole snapshot.
fn why(path: &Path, refused: &[SnapshotError]) -> String {
    if !refused.is_empty() {
        let reasons: String = refused.iter().map(|e| format!("\n  {e}")).collect();
        return format!("there is no whole snapshot in this folder{reasons}");
    }
    if of_run(path).is_some() {
        return "this run has saved no snapshot".into();
    }
    let mut runs = runs(path);
    // The newest first; runs without a snapshot last.
    runs.sort_by(|a, b| b.cmp(a));
    let Some((_, newest)) = runs.first() else {
        return "there is no snapshot in this folder. Wanted is a snapshot (its name ends in _snapshot.safetensors), or \
                the folder of a run"
            .into();
    };
    let more = runs.len().saturating_sub(LISTED);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let lines: String = runs.iter().take(LISTED).map(|(_, run)| format!("\n  {}", run.display())).collect();
    format!(
        "this is a folder of runs: name one of them, such as the newest, {}. There are, newest first:{lines}{more}",
        newest.display()
    )
}

/// The runs in a folder, each with the time at which its newest snapshot was saved.
fn runs(path: &Path) -> Vec<(Option<u64>, PathBuf)> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().take(MOST);
    let run = |folder: PathBuf| {
        let names = snapshot::list(&of_run(&folder)?).unwrap_or_default();
        let meta = names.first().and_then(|(_, path)| snapshot::peek(path).ok());
        Some((meta.map(|meta| meta.saved_unix_ms), folder))
    };
    entries.filter_map(|entry| run(entry.path())).collect()
}
