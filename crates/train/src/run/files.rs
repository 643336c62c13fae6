//! The files of a run: its folder, and in it `metrics.jsonl` and `skipped.jsonl`, which grow by lines.
//!
//! A line is one JSON object, appended whole; after a kill or on a full disk the last one may be cut.

use super::Run;
use super::tally::Part;
use crate::error::TrainError;
use crate::run_dir::RunDir;
use ocelli_data::batch::Batch;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a run leaves on the disk.
#[derive(Debug)]
pub struct Files {
    /// Its folder.
    pub dir: RunDir,
    /// A line a step, and others.
    pub metrics: Lines,
    /// A line a bad row.
    pub skipped: Lines,
    /// One of the logs takes nothing more: neither is written to.
    lost: bool,
}

impl Files {
    /// The files of the run whose folder is `dir`. The logs are made with their first lines.
    pub fn new(dir: RunDir) -> Self {
        let lines = |name| Lines { path: dir.path().join(name), file: None };
        let (metrics, skipped) = (lines("metrics.jsonl"), lines("skipped.jsonl"));
        Self { dir, metrics, skipped, lost: false }
    }
}

/// A log could not be appended to.
#[derive(Debug, Error)]
#[error("cannot write {}: {source}{}", path.display(), advice(source))]
pub struct AppendError {
    /// The file.
    pub path: PathBuf,
    /// The system's reason.
    pub source: io::Error,
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            ". Free some space there, or choose another folder"
        }
        ErrorKind::FileTooLarge => ". It has the largest size allowed to this program (see `ulimit -f`)",
        _ => "",
    }
}

/// A file that grows by whole lines.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: Option<File>,
}

impl Lines {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines with one write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, lines: &[Value]) -> Result<(), AppendError> {
        if lines.is_empty() {
            return Ok(());
        }
        let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
        let fail = |source| AppendError { path: self.path.clone(), source };
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().create(true).append(true).open(&self.path).map_err(fail)?);
        }
        self.file.as_mut().map_or(Ok(()), |f| f.write_all(text.as_bytes())).map_err(fail)
    }
}

impl Run<'_> {
    /// Appends to `metrics.jsonl`.
    pub(super) fn log(&mut self, lines: &[Value]) -> Result<(), TrainError> {
        self.append(|files| &mut files.metrics, lines)
    }

    /// Counts the odd rows of a batch, and lists the bad ones that are new; returns how many these are.
    pub(super) fn note_odd(&mut self, part: Part, batch: &Batch) -> Result<usize, TrainError> {
        let lines = self.tally.add(part, batch);
        self.append(|files| &mut files.skipped, &lines).map(|()| lines.len())
    }

    fn append(&mut self, log: fn(&mut Files) -> &mut Lines, lines: &[Value]) -> Result<(), TrainError> {
        match self.files.as_mut().filter(|files| !files.lost) {
            Some(files) => log(files).append(lines).map_err(|e| self.lost(e)),
            None => Ok(()),
        }
    }

    /// What was learnt is saved before a lost log ends the run.
    fn lost(&mut self, source: AppendError) -> TrainError {
        // Before: saving writes metrics, and would come back here.
        self.files.iter_mut().for_each(|files| files.lost = true);
        let failed = match self.rescue() {
            Ok(()) => String::new(),
            Err(e) => format!("The steps since could not be saved: {e}. "),
        };
        let kept = match self.newest() {
            Some(path) => format!("{failed}The newest snapshot is {}", path.display()),
            None => format!("{failed}There is no snapshot"),
        };
        TrainError::Append { source, kept }
    }
}
