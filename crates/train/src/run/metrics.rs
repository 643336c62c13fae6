//! `metrics.jsonl` and `skipped.jsonl`: one JSON object a line, appended; a line is written whole or, after a
//! kill, is the last one and cut.

use crate::engine::StepMetrics;
use crate::error::TrainError;
use crate::report::Progress;
use ocelli_data::batch::Skipped;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file that grows by whole lines.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: Option<File>,
}

impl Lines {
    /// The file `path`, made with its first line.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines with one write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, lines: &[Value]) -> Result<(), TrainError> {
        if lines.is_empty() {
            return Ok(());
        }
        let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
        let fail = |source| TrainError::Append { path: self.path.clone(), source };
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().create(true).append(true).open(&self.path).map_err(fail)?);
        }
        self.file.as_mut().map_or(Ok(()), |f| f.write_all(text.as_bytes())).map_err(fail)
    }
}

/// One step as a line.
pub fn step_line(epoch: u64, step: u64, m: &StepMetrics) -> Value {
    json!({"kind": "step", "epoch": epoch, "step": step, "loss": m.loss(), "grad_norm": m.grad_norm, "lr": m.lr, "weight": m.weight})
}

/// The state of things as a line.
pub fn progress_line(p: &Progress) -> Value {
    json!({
        "kind": "progress", "epoch": p.epoch, "step": p.step, "loss": p.loss, "images_per_s": p.images_per_s,
        "ms_per_step": p.ms_per_step, "data_wait": p.data_wait,
    })
}

/// A validation as a line.
pub fn validation_line(epoch: u64, step: u64, loss: f64) -> Value {
    json!({"kind": "validation", "epoch": epoch, "step": step, "loss": loss})
}

/// Bad samples of a run.
#[derive(Debug)]
pub struct Skips {
    lines: Lines,
    /// Training samples by reason.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Skips {
    /// Lists them in `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { lines: Lines::new(path), counts: BTreeMap::new() }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Where they are listed.
    pub fn path(&self) -> &Path {
        self.lines.path()
    }

    /// `3 truncated, 1 not_an_image`.
    pub fn reasons(&self) -> String {
        self.counts.iter().map(|(r, n)| format!("{n} {r}")).collect::<Vec<_>>().join(", ")
    }

    /// Lists the bad samples of a batch of a split, and counts those of training.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn add(&mut self, split: &str, skipped: &[Skipped]) -> Result<(), TrainError> {
        let line = |s: &Skipped| json!({"split": split, "reason": s.why.reason, "place": s.why.place, "row": s.row, "detail": s.why.detail});
        if split == "training" {
            skipped.iter().for_each(|s| *self.counts.entry(s.why.reason).or_default() += 1);
        }
        self.lines.append(&skipped.iter().map(line).collect::<Vec<_>>())
    }
}
