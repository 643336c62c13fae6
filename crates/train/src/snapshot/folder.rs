//! Snapshots in a folder: which is newest and whole, which belongs to an epoch, which may go.
//!
//! Invariants: files that are not named as snapshots are never read, changed or removed; a damaged snapshot is never
//! removed; the newest whole snapshot of a run is never removed.
use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Meta, SnapshotError, SnapshotName, atomic, peek, verify};

/// A whole snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its file.
    pub path: PathBuf,
    /// What its name says.
    pub name: SnapshotName,
    /// What it holds beside tensors.
    pub meta: Meta,
}

/// What a search for the newest snapshot gave.
#[derive(Debug, Default)]
pub struct Search {
    /// The newest whole snapshot, if there is one.
    pub found: Option<Found>,
    /// Newer ones that were refused, newest first. Each names its file and the reason: show them as warnings.
    pub refused: Vec<SnapshotError>,
}

/// The newest whole snapshot of a folder; an absent folder has none.
///
/// # Errors
/// [`SnapshotError::NonFinite`] if the newest whole file holds NaN or infinity: going back in silence would only repeat
/// the divergence, so the error names an earlier snapshot instead. [`SnapshotError::Read`] if the folder cannot be read.
pub fn latest(dir: &Path) -> Result<Search, SnapshotError> {
    search(dir, |_| true)
}

/// As [`latest`], among the snapshots that were made with this config (a folder may be shared by several).
///
/// # Errors
/// As [`latest`].
pub fn latest_of_config(dir: &Path, config_name: &str) -> Result<Search, SnapshotError> {
    search(dir, |meta| meta.config_name == config_name)
}

fn search(dir: &Path, wanted: impl Fn(&Meta) -> bool) -> Result<Search, SnapshotError> {
    let mut result = Search::default();
    let mut names = list(dir)?.into_iter();
    while let Some((name, path)) = names.next() {
        if peek(&path).is_ok_and(|meta| !wanted(&meta)) {
            continue;
        }
        match verify(&path) {
            Ok(meta) => {
                result.found = Some(Found { path, name, meta });
                break;
            }
            Err(SnapshotError::NonFinite { path, tensor, index, value, changed, .. }) => {
                let earlier = names.map(|(_, path)| path).find(|p| verify(p).is_ok_and(|m| wanted(&m)));
                return Err(SnapshotError::NonFinite { path, tensor, index, value, changed, earlier });
            }
            Err(error) => result.refused.push(error),
        }
    }
    Ok(result)
}

/// The snapshot taken at the end of epoch `epoch`. It is not read here: [`super::load`] says whether it is whole.
///
/// # Errors
/// [`SnapshotError::NoSuchEpoch`], listing the snapshots that the folder has.
pub fn by_epoch(dir: &Path, epoch: u64) -> Result<PathBuf, SnapshotError> {
    let wanted = SnapshotName::end_of_epoch(epoch);
    let mut names = list(dir)?;
    if let Some(at) = names.iter().position(|(name, _)| *name == wanted) {
        return Ok(names.swap_remove(at).1);
    }
    let mut present: Vec<String> = names.iter().rev().map(|(name, _)| name.to_string()).collect();
    if present.is_empty() {
        present.push("nothing".into());
    }
    Err(SnapshotError::NoSuchEpoch {
        dir: dir.to_path_buf(),
        wanted: wanted.to_string(),
        present: present.join(", "),
    })
}

/// Removes all but the newest `keep_last` snapshots of run `run_id` from a folder, and what killed saves left there.
/// Returns the files removed, oldest first.
///
/// At least one is kept, and if none of those kept is whole, the newest whole one beside them. Snapshots of other runs
/// and damaged ones stay.
///
/// # Errors
/// [`SnapshotError::Read`] if the folder cannot be read or a file cannot be removed.
pub fn prune(dir: &Path, keep_last: usize, run_id: &str) -> Result<Vec<PathBuf>, SnapshotError> {
    atomic::sweep(dir);
    let own =
        list(dir)?.into_iter().map(|(_, path)| path).filter(|p| peek(p).is_ok_and(|m| m.run_id == run_id));
    let mut kept: Vec<PathBuf> = own.collect();
    let mut old = kept.split_off(kept.len().min(keep_last.max(1)));
    if old.is_empty() {
        return Ok(old);
    }
    if !kept.iter().any(|p| verify(p).is_ok()) {
        match old.iter().position(|p| verify(p).is_ok()) {
            Some(at) => drop(old.remove(at)),
            // Nothing here is whole: whatever can still be saved by hand must stay.
            None => return Ok(Vec::new()),
        }
    }
    old.reverse();
    for path in &old {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(SnapshotError::Read { path: path.clone(), source });
            }
            _ => {}
        }
    }
    Ok(old)
}

/// The files named as snapshots, newest first.
fn list(dir: &Path) -> Result<Vec<(SnapshotName, PathBuf)>, SnapshotError> {
    let fail = |source| SnapshotError::Read { path: dir.to_path_buf(), source };
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(fail)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        if let Some(name) = entry.file_name().to_str().and_then(SnapshotName::parse) {
            names.push((name, entry.path()));
        }
    }
    names.sort_by_key(|(name, _)| std::cmp::Reverse(*name));
    Ok(names)
}
