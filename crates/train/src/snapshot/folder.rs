//! Snapshots in a folder: which is newest and whole, which belongs to an epoch, which may go.
//!
//! Invariants: files that are not named as snapshots are never read, changed or removed; a damaged snapshot is never
//! removed; the newest whole snapshot of a run is never removed.
use std::{
    fmt, fs, io,
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
    /// The newest whole snapshot that fits, if there is one.
    pub found: Option<Found>,
    /// Newer ones that were refused, newest first. Each names its file and the reason: show them as warnings.
    pub refused: Vec<SnapshotError>,
    /// Newer ones that do not fit, newest first.
    pub passed: Vec<Passed>,
}

/// Whether a snapshot is one that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Fits,
    /// It would be, but for these differences, in words.
    Differs(String),
    /// It belongs to something else and is not worth a word.
    Other,
}

/// Snapshots of one folder, one after another by age, that do not fit for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The newest of them.
    pub path: PathBuf,
    /// When it was saved.
    pub saved_unix_ms: u64,
    /// How many they are.
    pub count: usize,
    /// What differs.
    pub why: String,
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.count > 1 {
            write!(f, " (and {} older there)", self.count - 1)?;
        }
        write!(f, ": {}", self.why)
    }
}

/// The newest whole snapshot of a folder; an absent folder has none.
///
/// # Errors
/// [`SnapshotError::NonFinite`] if the newest whole file holds NaN or infinity: going back in silence would only repeat
/// the divergence, so the error names an earlier snapshot instead. [`SnapshotError::Read`] if the folder cannot be read.
pub fn latest(dir: &Path) -> Result<Search, SnapshotError> {
    latest_that(dir, |_| true, |_| Verdict::Fits)
}

/// As [`latest`], among the snapshots whose names are `wanted` and that `judge` says fit.
///
/// # Errors
/// As [`latest`].
pub fn latest_that(
    dir: &Path,
    wanted: impl Fn(SnapshotName) -> bool,
    judge: impl Fn(&Meta) -> Verdict,
) -> Result<Search, SnapshotError> {
    let fits = |meta: &Meta| judge(meta) == Verdict::Fits;
    let mut result = Search::default();
    let mut names = list(dir)?.into_iter().filter(|(name, _)| wanted(*name));
    while let Some((name, path)) = names.next() {
        // One whose header cannot be read is judged below.
        if let Ok(meta) = peek(&path) {
            match judge(&meta) {
                Verdict::Fits => {}
                Verdict::Other => continue,
                Verdict::Differs(why) => {
                    result.pass(path, meta.saved_unix_ms, why);
                    continue;
                }
            }
        }
        match verify(&path) {
            Ok(meta) => {
                result.found = Some(Found { path, name, meta });
                break;
            }
            Err(SnapshotError::NonFinite { path, tensor, index, value, changed, .. }) => {
                let earlier = names.map(|(_, path)| path).find(|p| verify(p).is_ok_and(|m| fits(&m)));
                return Err(SnapshotError::NonFinite { path, tensor, index, value, changed, earlier });
            }
            Err(error) => result.refused.push(error),
        }
    }
    Ok(result)
}

impl Search {
    fn pass(&mut self, path: PathBuf, saved_unix_ms: u64, why: String) {
        match self.passed.last_mut() {
            Some(last) if last.why == why => last.count += 1,
            _ => self.passed.push(Passed { path, saved_unix_ms, count: 1, why }),
        }
    }
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

/// The files named as snapshots, newest first; an absent folder has none. They are not read here.
///
/// # Errors
/// [`SnapshotError::Read`] if the folder cannot be read.
pub fn list(dir: &Path) -> Result<Vec<(SnapshotName, PathBuf)>, SnapshotError> {
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
