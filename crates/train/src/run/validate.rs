//! The loss on the validation split: dropout off, weighted by tokens, every row once.

use super::Run;
use super::metrics::validation_line;
use super::tally::Part;
use crate::error::TrainError;
use crate::evaluate::{Summed, in_order};
use crate::report::Event;
use ocelli_data::text::count;

impl Run<'_> {
    /// Measures and reports; nothing without a validation split.
    pub(super) fn validate(&mut self) -> Result<(), TrainError> {
        let Some((dataset, rows)) = self.data.validation.clone() else { return Ok(()) };
        self.report()?;
        let limit = self.config().trainer.eval_iters.unwrap_or(u64::MAX);
        let mut loader = in_order(self.config(), dataset, rows, self.engine.memory())?;
        let (mut sum, mut batches, mut skipped) = (Summed::default(), 0, 0);
        while let Some(loaded) = if batches < limit { loader.next_batch() } else { None } {
            let loaded = loaded?;
            if self.interrupted() {
                return Ok(());
            }
            skipped += self.note_odd(Part::Validation, &loaded.batch)?;
            sum.add(self.engine.evaluate(&loaded.batch)?);
            batches += 1;
            loader.recycle(loaded.batch);
        }
        let Some(loss) = sum.mean() else {
            self.reporter
                .event(&Event::Warning("no validation sample could be used: there is no validation loss"));
            return Ok(());
        };
        if !loss.is_finite() {
            return Err(self.diverged(loss));
        }
        if skipped > 0 {
            let listed = if self.files.is_some() { " (listed in skipped.jsonl)" } else { "" };
            let line = format!("{} could not be used{listed}", count(skipped, "validation sample"));
            self.reporter.event(&Event::Warning(&line));
        }
        self.validated = Some((self.step, loss));
        self.log(&[validation_line(self.epoch, self.step, loss)])?;
        let (epoch, step, epoch_ended) = (self.epoch, self.step, self.epoch_ended());
        self.reporter.event(&Event::Validation { epoch, step, loss, epoch_ended });
        Ok(())
    }
}
