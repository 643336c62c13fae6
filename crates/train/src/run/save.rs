//! Snapshots of a run.
//!
//! Invariant: whatever ends a run, the steps taken are saved first, if they can be; only a state that is no number any
//! more is not.

use super::Run;
use crate::checkpoint::{self, FIRST_CHARACTER, GLOBAL_BATCH, TEXT_LIMIT};
use crate::error::TrainError;
use crate::report::Event;
use crate::snapshot::{self, Meta, SnapshotName};
use std::collections::BTreeMap;

impl Run<'_> {
    /// Saves the state as it is after the last step. Its metrics are read first: a state that is no number any
    /// more is never saved.
    pub(super) fn save(&mut self) -> Result<(), TrainError> {
        self.flush()?;
        let Some(run) = self.files.as_ref().map(|files| files.dir.clone()) else { return Ok(()) };
        let name = if self.epoch_ended() {
            SnapshotName::end_of_epoch(self.epoch)
        } else {
            SnapshotName::within_epoch(self.epoch, self.step)
        };
        let dir = run.snapshot_dir();
        let path = dir.join(name.to_string());
        let state = checkpoint::capture(&self.engine, self.meta(&run.info().run_id))?;
        self.saved_unix_ms = snapshot::save(&path, &state)?.saved_unix_ms;
        let before = self.saved.replace((path.clone(), self.step));
        self.saved_before = before.or(self.saved_before.take());
        self.reporter.event(&Event::Saved(&path));
        if let Some(keep) = self.config().trainer.keep_last {
            snapshot::prune(&dir, keep, &run.info().run_id)?;
        }
        Ok(())
    }

    /// Saves the steps that no snapshot holds, before something ends the run.
    pub(super) fn rescue(&mut self) -> Result<(), TrainError> {
        self.give_up_step()?;
        if self.unsaved() { self.save() } else { Ok(()) }
    }

    /// The error that ends the run, once what was learnt is saved.
    pub(super) fn ended_by(&mut self, error: TrainError) -> TrainError {
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
