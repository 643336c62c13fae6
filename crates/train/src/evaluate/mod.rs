//! How good a trained model is on rows that it was not trained on: the loss as a run's validation has it, and greedy
//! captions beside those that people wrote.
//!
//! Every row counts once in the loss; every picture is captioned once, and all its captions are its references.

mod attributes;
mod data;
mod measure;
mod pass;
mod rows;

pub(crate) use attributes::attributes;
pub(crate) use pass::{Summed, in_order};
pub use rows::{Captioned, Judged};

use crate::engine::host_memory;
use crate::error::TrainError;
use crate::report::{Attributes, Counts, Event, Reporter};
use crate::trained::Saved;
use measure::Measure;
use ocelli_ir::executor::Executor;
use ocelli_metrics::Scores;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to evaluate.
pub struct Request {
    /// The model. Its configuration says what data it is evaluated on.
    pub saved: Saved,
    /// The data are not those of the run: all rows are evaluated, unless they have a split to validate on.
    pub other_data: bool,
    /// Rows at most, the first ones.
    pub limit: Option<usize>,
    /// The device.
    pub executor: Arc<dyn Executor>,
    /// Set from outside to end early, without figures.
    pub interrupted: Arc<AtomicBool>,
}

/// What an evaluation found.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The snapshot.
    pub snapshot: PathBuf,
    /// Optimiser steps taken until it was saved.
    pub step: u64,
    /// Where the rows come from.
    pub source: String,
    /// Rows looked at.
    pub rows: usize,
    /// Mean loss a token.
    pub loss: f64,
    /// Tokens that it is the mean of.
    pub tokens: f64,
    /// Captions and bad rows, in the order of the rows.
    pub judged: Vec<Judged>,
    /// Over all captions.
    pub scores: Scores,
    /// Of drawn pictures.
    pub attributes: Option<Attributes>,
    /// Odd rows.
    pub counts: Counts,
    /// The share of bad rows that is borne (`data_config.max_skip_ratio`).
    pub skip_limit: f64,
}

impl Evaluated {
    /// `e` to the loss: among how many tokens, equally likely, the model would have to choose to lose as much.
    pub fn perplexity(&self) -> f64 {
        self.loss.exp()
    }

    /// The captions.
    pub fn captions(&self) -> impl Iterator<Item = &Captioned> {
        self.judged.iter().filter_map(|j| j.outcome.as_ref().ok())
    }

    /// Rows that could not be used.
    pub fn skipped(&self) -> usize {
        self.judged.iter().filter(|j| j.outcome.is_err()).count()
    }

    /// True if more rows than are borne could not be used.
    pub fn too_many_skipped(&self) -> bool {
        self.skipped() as f64 > self.skip_limit * self.rows as f64
    }
}

/// Evaluates as asked and tells how far it is.
///
/// # Errors
/// If the data or the model cannot be used, no row can, or it was interrupted.
pub fn evaluate(request: Request, reporter: &mut dyn Reporter) -> Result<Evaluated, TrainError> {
    let Request { saved, other_data, limit, executor, interrupted } = request;
    let (dataset, rows) = data::open(&saved, other_data, &interrupted, reporter)?;
    let rows = rows.first(limit.unwrap_or(usize::MAX));
    let mut loader = in_order(&saved.config, dataset.clone(), rows.clone(), host_memory(&executor))?;
    let total = rows.len();
    let mut measure = Measure::new(saved, executor, dataset, rows)?;
    while let Some(loaded) = loader.next_batch() {
        let loaded = loaded?;
        let done = measure.take(&loaded)?;
        loader.recycle(loaded.batch);
        // What is complete is not thrown away.
        if done < total && interrupted.load(Ordering::Relaxed) {
            return Err(TrainError::Stopped { done, total });
        }
        reporter.event(&Event::Looked { done, total });
    }
    measure.conclude()
}
