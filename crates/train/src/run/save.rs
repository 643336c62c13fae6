//! Snapshots of a run: the state is copied to the host between two steps, and a thread writes the copy while the run goes on.
//!
//! Invariant: whatever ends a run, the steps taken are saved first, if they can be; only a state that is no number any
//! more is not.

use super::Run;
use crate::checkpoint::{self, FIRST_CHARACTER, GLOBAL_BATCH, TEXT_LIMIT};
use crate::error::TrainError;
use crate::report::Event;
use crate::snapshot::{self, Meta, Snapshot, SnapshotError, SnapshotName};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A snapshot that is being written.
#[derive(Debug)]
pub struct Saving {
    path: PathBuf,
    step: u64,
    writer: Writer,
}

/// Who writes it, or what came of it where there is no thread for that.
#[derive(Debug)]
enum Writer {
    Thread(JoinHandle<Result<Meta, SnapshotError>>),
    Done(Box<Result<Meta, SnapshotError>>),
}

impl Saving {
    /// The step that it was taken at.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// Starts to write `state`.
    fn begin(path: PathBuf, step: u64, state: Snapshot<'static>) -> Self {
        let state = Arc::new(state);
        let (to, its) = (path.clone(), state.clone());
        let thread = std::thread::Builder::new().name("ocelli-save".into());
        let writer = match thread.spawn(move || snapshot::save(&to, &its)) {
            Ok(thread) => Writer::Thread(thread),
            Err(_) => Writer::Done(Box::new(snapshot::save(&path, &state))),
        };
        Self { path, step, writer }
    }

    fn is_done(&self) -> bool {
        match &self.writer {
            Writer::Thread(thread) => thread.is_finished(),
            Writer::Done(_) => true,
        }
    }
}

impl Run<'_> {
    /// Begins to save the state as it is after the last step. Its metrics are read first: a state that is no number any
    /// more is never saved. The snapshot counts once [`written`](Self::written) has taken it up.
    pub(super) fn save(&mut self) -> Result<(), TrainError> {
        self.flush()?;
        self.written()?;
        let Some(run) = self.files.as_ref().map(|files| files.dir.clone()) else { return Ok(()) };
        let name = if self.epoch_ended() {
            SnapshotName::end_of_epoch(self.epoch)
        } else {
            SnapshotName::within_epoch(self.epoch, self.step)
        };
        let dir = run.snapshot_dir();
        let path = dir.join(name.to_string());
        let state = checkpoint::capture(&self.engine, self.meta(&run.info().run_id))?;
        self.saving = Some(Saving::begin(path, self.step, state));
        Ok(())
    }

    /// Takes up the snapshot that is being written, if one is and if that is done; waits for nothing.
    pub(super) fn follow_save(&mut self) -> Result<(), TrainError> {
        if self.saving.as_ref().is_some_and(Saving::is_done) { self.written() } else { Ok(()) }
    }

    /// Waits until the snapshot is written that is being written, if one is: behind this, it is there.
    pub(super) fn written(&mut self) -> Result<(), TrainError> {
        let Some(Saving { path, step, writer }) = self.saving.take() else { return Ok(()) };
        let meta = match writer {
            Writer::Thread(thread) => {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?
            }
            Writer::Done(outcome) => (*outcome)?,
        };
        self.saved_unix_ms = meta.saved_unix_ms;
        let before = self.saved.replace((path.clone(), step));
        self.saved_before = before.or(self.saved_before.take());
        self.reporter.event(&Event::Saved(&path));
        if let (Some(keep), Some(files)) = (self.config().trainer.keep_last, &self.files) {
            snapshot::prune(&files.dir.snapshot_dir(), keep, &files.dir.info().run_id)?;
        }
        Ok(())
    }

    /// As [`written`](Self::written), before an error is told that names what is saved: a snapshot that could not be written is a warning
    /// then.
    pub(super) fn settle_save(&mut self) {
        if let Err(error) = self.written() {
            self.reporter.event(&Event::Warning(&error.to_string()));
        }
    }

    /// Saves the steps that no snapshot holds, before something ends the run.
    pub(super) fn rescue(&mut self) -> Result<(), TrainError> {
        self.give_up_step()?;
        if self.unsaved() {
            self.save()?;
        }
        self.written()
    }

    /// The error that ends the run, once what was learnt is saved.
    pub(super) fn ended_by(&mut self, error: TrainError) -> TrainError {
        self.settle_save();
        // What was tried just now is not tried again.
        let useless = matches!(error, TrainError::Diverged { .. } | TrainError::BadSteps { .. });
        if !matches!(error, TrainError::Snapshot(_))
            && !useless
            && let Err(also) = self.rescue()
        {
            self.reporter.event(&Event::Warning(&format!("the last steps could not be saved: {also}")));
        }
        error
    }

    fn meta(&self, run_id: &str) -> Meta {
        let model = self.engine.model();
        let mut sizes = BTreeMap::from([
            (GLOBAL_BATCH.to_string(), self.config().trainer.train_batch_size as u64),
            (TEXT_LIMIT.to_string(), self.data.train.lengths().limit() as u64),
            ("vocab_size".to_string(), model.vocab_size() as u64),
        ]);
        if let Some(first) = self.data.first_character {
            sizes.insert(FIRST_CHARACTER.to_string(), u64::from(u32::from(first)));
        }
        Meta {
            run_id: run_id.to_string(),
            config_name: self.request.name.clone(),
            config: self.request.text.clone(),
            tokenizer: self.data.tokenizer.to_json(),
            // Whatever the clock says, it is newer than what it came from.
            saved_unix_ms: self.saved_unix_ms.saturating_add(1),
            epoch: self.epoch,
            optim_step: self.step,
            data_step: self.batches,
            position: serde_json::json!(self.position).to_string(),
            seed: self.config().trainer.seed,
            source_fingerprint: self.data.fingerprint.clone(),
            sizes,
            tuning_hash: self.request.executor.tuning().unwrap_or_default(),
            ..Meta::default()
        }
    }
}
