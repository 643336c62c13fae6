//! What the steps were like: written down, told.

use super::bad_steps::BadSteps;
use super::{Run, metrics};
use crate::error::TrainError;
use crate::report::{Event, Progress};
use ocelli_data::text::count;
use serde_json::Value;
use std::time::Duration;

/// What is to be written and told of some attempts.
#[derive(Debug)]
pub struct Told {
    /// For `metrics.jsonl`.
    pub lines: Vec<Value>,
    /// The loss scales of those that overflowed.
    pub overflowed: Vec<f32>,
    /// The count of bad steps before them.
    before: BadSteps,
}

impl Run<'_> {
    /// Nothing yet.
    pub(super) fn told(&self) -> Told {
        Told { lines: vec![], overflowed: vec![], before: self.bad }
    }

    /// Writes and tells it; begins anew.
    pub(super) fn tell(&mut self, told: &mut Told) -> Result<(), TrainError> {
        let Told { lines, overflowed, before } = std::mem::replace(told, self.told());
        self.log(&lines)?;
        self.tell_overflows(&overflowed);
        self.tell_skipped(before);
        Ok(())
    }

    /// Says that gradients overflowed in 16 bits.
    fn tell_overflows(&mut self, overflowed: &[f32]) {
        let Some(last) = overflowed.last() else { return };
        let line = format!(
            "loss scale: {} overflowed and took no step; the scale is {} now",
            count(overflowed.len(), "gradient"),
            last / 2.0
        );
        self.reporter.event(&Event::Note(&line));
    }

    /// Tells of all steps since the last report, if there were any.
    pub(super) fn report(&mut self) -> Result<(), TrainError> {
        self.flush()?;
        self.progress(self.epoch)
    }

    /// Tells of the steps since the last report that the host has seen, if there were any.
    pub(super) fn progress(&mut self, epoch: u64) -> Result<(), TrainError> {
        let (sum, weight) = self.loss;
        if weight <= 0.0 {
            return Ok(());
        }
        self.loss = (0.0, 0.0);
        let w = std::mem::take(&mut self.window);
        let left = self.total.saturating_sub(self.known) as f64 * self.whole.ms_per_step() / 1e3;
        let progress = Progress {
            epoch,
            step: self.known,
            total: self.total,
            loss: sum / weight,
            lr: self.last.map_or(0.0, |m| f64::from(m.lr)),
            grad_norm: self.last.map_or(0.0, |m| f64::from(m.grad_norm)),
            images_per_s: w.images_per_s(),
            ms_per_step: w.ms_per_step(),
            data_wait: w.data_wait(),
            eta: Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX),
        };
        self.log(&[metrics::progress_line(&progress)])?;
        self.reporter.event(&Event::Progress(&progress));
        Ok(())
    }
}
