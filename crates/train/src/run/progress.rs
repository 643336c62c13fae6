//! What the steps were like: read back from the device, written down, told.

use super::{Run, metrics};
use crate::engine::StepMetrics;
use crate::error::TrainError;
use crate::report::{Event, Progress};
use ocelli_data::text::count;
use std::time::Duration;

impl Run<'_> {
    /// Reads the ring back, writes a line a step, and stops if the loss is no number any more. False if the newest
    /// attempt that it read overflowed.
    pub(super) fn flush(&mut self) -> Result<bool, TrainError> {
        if self.flushed == self.attempts {
            return Ok(true);
        }
        let mut rows = self.engine.metrics(self.flushed, self.attempts)?;
        self.flushed = self.attempts;
        // An attempt without weight is no step.
        rows.retain(|m| m.weight != 0.0);
        let stepped = !rows.last().is_some_and(StepMetrics::overflowed);
        self.take_back(&mut rows)?;
        let first = (self.step + 1).saturating_sub(rows.len() as u64);
        let epoch = self.epoch;
        let lines: Vec<_> =
            rows.iter().zip(first..).map(|(m, step)| metrics::step_line(epoch, step, m)).collect();
        self.log(&lines)?;
        if let Some((m, step)) = rows.iter().zip(first..).find(|(m, _)| !m.is_finite()) {
            return Err(self.diverged(step, m.loss(), m.grad_norm));
        }
        for m in &rows {
            self.loss = (self.loss.0 + f64::from(m.loss_sum), self.loss.1 + f64::from(m.weight));
        }
        self.last = rows.last().copied().or(self.last);
        Ok(stepped)
    }

    /// Takes out the attempts that were no steps because their gradient overflowed: only the device knew.
    fn take_back(&mut self, rows: &mut Vec<StepMetrics>) -> Result<(), TrainError> {
        let overflowed: Vec<StepMetrics> = rows.iter().copied().filter(StepMetrics::overflowed).collect();
        let Some(last) = overflowed.last() else { return Ok(()) };
        rows.retain(|m| !m.overflowed());
        self.step -= overflowed.len() as u64;
        let line = format!(
            "loss scale: {} overflowed and took no step; the scale is {} now",
            count(overflowed.len(), "gradient"),
            last.loss_scale / 2.0
        );
        self.reporter.event(&Event::Note(&line));
        let lines: Vec<_> = overflowed.iter().map(|m| metrics::overflow_line(self.epoch, m)).collect();
        self.log(&lines)
    }

    pub(super) fn diverged(&self, step: u64, loss: f32, norm: f32) -> TrainError {
        let advice = match self.newest() {
            Some(path) => format!("Go on from {} with a smaller trainer_config.lr", path.display()),
            None => "Try a smaller trainer_config.lr, or trainer_config.clip_grad_norm=1".into(),
        };
        TrainError::Diverged { step, loss, norm, advice }
    }

    /// Tells of the steps since the last report, if there were any.
    pub(super) fn report(&mut self) -> Result<(), TrainError> {
        self.flush()?;
        let (sum, weight) = self.loss;
        if weight <= 0.0 {
            return Ok(());
        }
        self.loss = (0.0, 0.0);
        let w = std::mem::take(&mut self.window);
        let left = self.total.saturating_sub(self.step) as f64 * self.whole.ms_per_step() / 1e3;
        let progress = Progress {
            epoch: self.epoch,
            step: self.step,
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
