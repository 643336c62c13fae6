//! A training run: from a configuration to a folder with metrics and snapshots.
//!
//! The loop is `Run::go`; each thing that it does beside a step has a file of its own.

mod bad_steps;
mod behind;
mod clock;
mod due;
mod epilogue;
mod files;
mod held_out;
mod judge;
mod keep;
mod metrics;
mod padding;
mod progress;
mod save;
mod start;
mod step;
pub(crate) mod tally;
mod validate;

use crate::engine::{Engine, StepMetrics};
use crate::error::TrainError;
use crate::prepare::Prepared;
use crate::report::{Event, Padding, Reporter, Summary};
use bad_steps::BadSteps;
use behind::Behind;
use clock::Window;
use ocelli_config::Config;
use ocelli_data::cache::Cached;
use ocelli_data::sampler::{Position, Sampler};
use ocelli_ir::executor::Executor;
use save::Saving;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use step::{Taken, Under};
use tally::Tally;

pub use files::AppendError;
use files::Files;
pub use start::{outlook, setup};

/// What to run.
pub struct Request {
    /// The configuration, checked.
    pub config: Config,
    /// Its name, for run folders.
    pub name: String,
    /// Its text, for the run folder and for snapshots.
    pub text: String,
    /// A snapshot to go on from; before `snapshot_load_strategy`.
    pub resume: Option<PathBuf>,
    /// The device.
    pub executor: Arc<dyn Executor>,
    /// Set from outside to end the run after the batch in progress: what a step of several batches has taken so far
    /// is given up.
    pub interrupted: Arc<AtomicBool>,
}

/// A run under way.
struct Run<'a> {
    request: &'a Request,
    engine: Engine,
    data: Prepared,
    caches: Vec<Arc<Cached>>,
    sampler: Sampler,
    /// None if no step is left to take.
    files: Option<Files>,
    reporter: &'a mut dyn Reporter,
    tally: Tally,
    /// Where the next batch stands.
    position: Position,
    /// Epoch of the last batch.
    epoch: u64,
    /// Optimiser steps taken before this part of the run.
    started: u64,
    /// Optimiser steps taken in the whole run, as far as is known: skipped ones that the host has not seen are in it.
    step: u64,
    /// Those of them that the host has seen.
    known: u64,
    /// Batches consumed in the whole run.
    batches: u64,
    /// Runs of the optimiser in the whole run: steps, and attempts that were none.
    attempts: u64,
    /// An attempt of this part of the run had weight; it may have overflowed all the same.
    weighted: bool,
    /// Attempts whose metrics the host has not seen.
    behind: Behind,
    /// Steps that the whole run will take.
    total: u64,
    /// The snapshot that the run went on from.
    origin: Option<PathBuf>,
    /// The snapshot that is being written.
    saving: Option<Saving>,
    /// The newest snapshot: its file and the step it was taken at.
    saved: Option<(PathBuf, u64)>,
    /// The one before, which may have been removed since.
    saved_before: Option<(PathBuf, u64)>,
    /// When it, or the one that the run went on from, was saved, in milliseconds since 1970.
    saved_unix_ms: u64,
    /// The last validation: its step and loss.
    validated: Option<(u64, f64)>,
    /// Loss and weight of the steps since the last report that the host has seen.
    loss: (f64, f64),
    /// The last step that it has seen.
    last: Option<StepMetrics>,
    bad: BadSteps,
    padding: Padding,
    /// As far as it was told of.
    padding_told: Padding,
    under: Under,
    window: Window,
    whole: Window,
}

/// Trains as asked and tells of it.
///
/// # Errors
/// Whatever ends the run before its time; snapshots written before stay.
pub fn train(request: &Request, reporter: &mut dyn Reporter) -> Result<Summary, TrainError> {
    let mut run = Run::start(request, reporter)?;
    match run.go() {
        Ok(()) => run.end(),
        Err(error) => Err(run.ended_by(error)),
    }
}

impl Run<'_> {
    fn config(&self) -> &Config {
        &self.request.config
    }

    /// Steps until the run is complete or interrupted.
    fn go(&mut self) -> Result<(), TrainError> {
        if self.step >= self.total {
            let line = self.nothing_left();
            self.reporter.event(&Event::Note(&line));
            return Ok(());
        }
        let mut loader = self.loader()?;
        while self.step < self.total && !self.interrupted() {
            let begin = Instant::now();
            let Some(loaded) = loader.next_batch() else {
                // Every epoch ends with one `None`; after the last there are only more of them.
                if self.position.epoch >= self.config().trainer.epochs { break } else { continue }
            };
            let waiting = begin.elapsed();
            let loaded = loaded?;
            let taken = self.take(&loaded, waiting)?;
            loader.recycle(loaded.batch);
            if taken != Taken::Part {
                self.after_step(taken)?;
            }
        }
        self.give_up_step()?;
        self.report()
    }

    /// True if the last batch was the last of its epoch.
    fn epoch_ended(&self) -> bool {
        self.position.epoch > self.epoch
    }

    fn interrupted(&self) -> bool {
        self.request.interrupted.load(Ordering::Relaxed)
    }

    /// Reports, saves and validates, whichever is due.
    fn after_step(&mut self, taken: Taken) -> Result<(), TrainError> {
        self.follow_save()?;
        self.tell_of_caches();
        let due = self.look(taken)?;
        let epoch_ended = self.epoch_ended();
        self.judge()?;
        if epoch_ended {
            self.tell_padding();
        }
        let t = &self.request.config.trainer;
        let (save, validate) = (t.snapshot_interval.is_none(), t.eval_interval.is_none());
        // Saved first: what goes wrong in a validation costs no step.
        let learnt = self.unsaved() || self.bad.in_a_row == 0;
        if due.save || (epoch_ended && save && learnt) {
            self.save()?;
        }
        if due.validate || (epoch_ended && validate) {
            self.validate()?;
        }
        Ok(())
    }

    /// The newest snapshot that holds what was learnt.
    fn newest(&self) -> Option<&PathBuf> {
        self.saved.as_ref().map(|(path, _)| path).or(self.origin.as_ref())
    }

    /// Steps were taken that no snapshot holds.
    fn unsaved(&self) -> bool {
        let saving = self.saving.as_ref().map(Saving::step);
        let held = saving.or(self.saved.as_ref().map(|(_, step)| *step));
        self.step > self.started && held != Some(self.step)
    }
}
