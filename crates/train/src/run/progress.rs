//! What the steps were like: read back from the device, written down, told.

use super::{Run, metrics};
use crate::engine::StepMetrics;
use crate::error::TrainError;
use crate::report::{Event, Progress};
use ocelli_data::text::count;
use std::time::Duration;

impl Run<'_> {
    /// Reads the ring back, writes a line a step, and stops if too many steps in a row were bad. False if the newest
    /// attempt that it read was no step.
    pub(super) fn flush(&mut self) -> Result<bool, TrainError> {
        if self.flushed == self.attempts {
            return Ok(true);
        }
        let mut rows = self.engine.metrics(self.flushed, self.attempts)?;
        self.flushed = self.attempts;
        // An attempt without weight is no step.
        rows.retain(|m| m.weight != 0.0);
        // Only the device knew which attempts were steps.
        self.step -= rows.iter().filter(|m| !m.taken()).count() as u64;
        let (before, most) = (self.bad, self.config().trainer.max_bad_steps);
        let (mut step, mut lines, mut ended) =
            (self.step - rows.iter().filter(|m| m.taken()).count() as u64, Vec::new(), None);
        for m in &rows {
            if m.taken() {
                step += 1;
                self.bad.in_a_row = 0;
                self.loss = (self.loss.0 + f64::from(m.loss_sum), self.loss.1 + f64::from(m.weight));
                lines.push(metrics::step_line(self.epoch, step, m));
            } else if m.overflowed() {
                lines.push(metrics::overflow_line(self.epoch, m));
            } else {
                self.bad.add(m);
                lines.push(metrics::bad_line(self.epoch, step, m));
                if self.bad.in_a_row >= most && ended.is_none() {
                    ended = Some(self.too_many_bad(step, m));
                }
            }
        }
        self.log(&lines)?;
        if let Some(error) = ended {
            return Err(error);
        }
        self.tell_overflows(&rows);
        self.tell_skipped(before);
        self.last = rows.iter().rfind(|m| m.taken()).copied().or(self.last);
        Ok(rows.last().is_none_or(StepMetrics::taken))
    }

    /// Says that gradients overflowed in 16 bits.
    fn tell_overflows(&mut self, rows: &[StepMetrics]) {
        let overflowed: Vec<&StepMetrics> = rows.iter().filter(|m| m.overflowed()).collect();
        let Some(last) = overflowed.last() else { return };
        let line = format!(
            "loss scale: {} overflowed and took no step; the scale is {} now",
            count(overflowed.len(), "gradient"),
            last.loss_scale / 2.0
        );
        self.reporter.event(&Event::Note(&line));
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
