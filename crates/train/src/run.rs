//! A training run: from a configuration to a folder with metrics and snapshots.
//!
//! The loop is `Run::go`; each thing that it does beside a step has a file of its own.

mod clock;
mod epilogue;
mod metrics;
mod save;
mod start;
mod validate;

use crate::engine::{Engine, StepMetrics};
use crate::error::TrainError;
use crate::prepare::Prepared;
use crate::program::RING_ROWS;
use crate::report::{Event, Progress, Reporter, Summary};
use crate::run_dir::RunDir;
use clock::Window;
use metrics::{Lines, Skips};
use ocelli_config::Config;
use ocelli_data::loader::Loaded;
use ocelli_data::sampler::{Position, Sampler};
use ocelli_ir::executor::Executor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Samples after which the share of bad ones is judged for the first time.
const JUDGE_AFTER: u64 = 1000;

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
    /// Set from outside to end the run after the step in progress.
    pub interrupted: Arc<AtomicBool>,
}

/// A run under way.
struct Run<'a> {
    request: &'a Request,
    engine: Engine,
    data: Prepared,
    sampler: Sampler,
    dir: RunDir,
    reporter: &'a mut dyn Reporter,
    metrics: Lines,
    skips: Skips,
    /// Where the next batch stands.
    position: Position,
    /// Epoch of the last batch.
    epoch: u64,
    /// Optimiser steps taken in the whole run.
    step: u64,
    /// Batches consumed in the whole run.
    batches: u64,
    /// Batches whose metrics were read back.
    flushed: u64,
    /// Steps that the whole run will take.
    total: u64,
    /// The snapshot that the run went on from.
    origin: Option<PathBuf>,
    /// The newest snapshot: its file and the step it was taken at.
    saved: Option<(PathBuf, u64)>,
    /// The step of the last validation.
    validated_at: Option<u64>,
    /// Loss and weight of the steps since the last report.
    loss: (f64, f64),
    last: Option<StepMetrics>,
    window: Window,
    whole: Window,
    summary: Summary,
}

/// Trains as asked and tells of it.
///
/// # Errors
/// Whatever ends the run before its time; snapshots written before stay.
pub fn train(request: &Request, reporter: &mut dyn Reporter) -> Result<Summary, TrainError> {
    let mut run = Run::start(request, reporter)?;
    run.go()?;
    run.end()
}

impl Run<'_> {
    fn config(&self) -> &Config {
        &self.request.config
    }

    /// Steps until the run is complete or interrupted.
    fn go(&mut self) -> Result<(), TrainError> {
        if self.step >= self.total {
            let line = format!("step {} of {} is reached already: nothing to train", self.step, self.total);
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
            self.step_on(&loaded, waiting)?;
            loader.recycle(loaded.batch);
            self.after_step()?;
        }
        self.flush()
    }

    /// True if the last batch was the last of its epoch.
    fn epoch_ended(&self) -> bool {
        self.position.epoch > self.epoch
    }

    fn interrupted(&self) -> bool {
        self.request.interrupted.load(Ordering::Relaxed)
    }

    fn step_on(&mut self, loaded: &Loaded, waiting: Duration) -> Result<(), TrainError> {
        let begin = Instant::now();
        self.engine.train_step(&loaded.batch)?;
        let working = begin.elapsed();
        let batch = &loaded.batch;
        // A batch without weight is no step (the device decides the same).
        self.step += u64::from(loaded.batch.tokens_weight > 0.0);
        self.batches += 1;
        self.position = loaded.next;
        self.epoch = loaded.position.epoch;
        self.skips.add("training", &batch.skipped)?;
        self.summary.truncated += batch.flaws.iter().filter(|f| f.cut).count() as u64;
        self.summary.replaced += batch.flaws.iter().map(|f| f.replaced as u64).sum::<u64>();
        self.window.add(batch.real_rows as u64, waiting, working);
        self.whole.add(batch.real_rows as u64, waiting, working);
        if self.config().trainer.log_verbose {
            let (epoch, step, time) = (self.epoch, self.step, waiting + working);
            self.reporter.event(&Event::Step { epoch, step, time });
        }
        Ok(())
    }

    /// Reports, validates and saves, whichever is due.
    fn after_step(&mut self) -> Result<(), TrainError> {
        let epoch_ended = self.epoch_ended();
        let t = &self.request.config.trainer;
        let due = |interval: Option<u64>| interval.is_some_and(|n| self.step.is_multiple_of(n));
        let (validate, save) = (due(t.eval_interval), due(t.snapshot_interval));
        if due(Some(t.log_interval)) || self.step == self.total {
            self.report()?;
        } else if epoch_ended || self.batches - self.flushed >= RING_ROWS as u64 / 2 {
            self.flush()?;
        }
        self.judge_skips(epoch_ended)?;
        // Saved first: what goes wrong in a validation costs no step.
        if save || (epoch_ended && t.snapshot_interval.is_none()) {
            self.save()?;
        }
        if validate || (epoch_ended && t.eval_interval.is_none()) {
            self.validate()?;
        }
        Ok(())
    }

    /// Too many bad samples end a run; judged at the end of an epoch and of the run, or once enough were seen.
    fn judge_skips(&self, epoch_ended: bool) -> Result<(), TrainError> {
        let skipped = self.skips.total();
        let (seen, limit) = (skipped + self.whole.samples, self.config().data.max_skip_ratio);
        // Without a single usable sample there is nothing to train on, whatever the limit.
        let none = skipped > 0 && self.whole.samples == 0;
        if !(epoch_ended || seen >= JUDGE_AFTER) || (skipped as f64 <= limit * seen as f64 && !none) {
            return Ok(());
        }
        let list = self.skips.path().to_path_buf();
        Err(TrainError::TooManySkipped { skipped, seen, reasons: self.skips.reasons(), limit, list })
    }

    /// Reads the ring back, writes a line a step, and stops if the loss is no number any more.
    fn flush(&mut self) -> Result<(), TrainError> {
        let rows = self.engine.metrics(self.flushed, self.batches)?;
        let first = (self.step + 1).saturating_sub(rows.len() as u64);
        let epoch = self.epoch;
        let lines: Vec<_> =
            rows.iter().zip(first..).map(|(m, step)| metrics::step_line(epoch, step, m)).collect();
        self.metrics.append(&lines)?;
        if let Some((m, step)) = rows.iter().zip(first..).find(|(m, _)| !m.is_finite()) {
            return Err(self.diverged(step, m.loss(), m.grad_norm));
        }
        for m in &rows {
            self.loss = (self.loss.0 + f64::from(m.loss_sum), self.loss.1 + f64::from(m.weight));
        }
        self.last = rows.last().copied().or(self.last);
        self.flushed = self.batches;
        Ok(())
    }

    fn diverged(&self, step: u64, loss: f32, norm: f32) -> TrainError {
        let advice = match self.saved.as_ref().map(|(path, _)| path).or(self.origin.as_ref()) {
            Some(path) => format!("Go on from {} with a smaller trainer_config.lr", path.display()),
            None => "Try a smaller trainer_config.lr, or trainer_config.clip_grad_norm=1".into(),
        };
        TrainError::Diverged { step, loss, norm, advice }
    }

    fn report(&mut self) -> Result<(), TrainError> {
        self.flush()?;
        let w = std::mem::take(&mut self.window);
        let (sum, weight) = std::mem::take(&mut self.loss);
        let left = self.total.saturating_sub(self.step) as f64 * self.whole.ms_per_step() / 1e3;
        let progress = Progress {
            epoch: self.epoch,
            step: self.step,
            total: self.total,
            loss: sum / weight.max(f64::MIN_POSITIVE),
            lr: self.last.map_or(0.0, |m| f64::from(m.lr)),
            grad_norm: self.last.map_or(0.0, |m| f64::from(m.grad_norm)),
            images_per_s: w.images_per_s(),
            ms_per_step: w.ms_per_step(),
            data_wait: w.data_wait(),
            eta: Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX),
        };
        self.metrics.append(&[metrics::progress_line(&progress)])?;
        self.reporter.event(&Event::Progress(&progress));
        Ok(())
    }
}
