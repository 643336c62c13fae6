//! Steps whose loss or gradient is no finite number. The device skips them; here they are counted, told, and end the run
//! if there are too many in a row.
//!
//! They are known when their metrics have arrived, so the run ends within `log_interval` steps and those under way.

use super::Run;
use crate::engine::StepMetrics;
use crate::error::TrainError;
use crate::report::Event;
use ocelli_data::text::count;
use std::path::Path;

/// The count of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct BadSteps {
    /// All of them.
    pub count: u64,
    /// Since the last step that was taken.
    pub in_a_row: u64,
    /// The last.
    pub last: Option<StepMetrics>,
}

impl BadSteps {
    /// One more.
    pub fn add(&mut self, m: &StepMetrics) {
        self.count += 1;
        self.in_a_row += 1;
        self.last = Some(*m);
    }
}

impl Run<'_> {
    /// Says that steps were skipped since `before`.
    pub(super) fn tell_skipped(&mut self, before: BadSteps) {
        let new = self.bad.count - before.count;
        let Some(last) = self.bad.last.filter(|_| new > 0) else { return };
        let line = format!(
            "{} behind step {} skipped, no weight was changed: the loss or its gradient was no finite number (loss {}, \
             gradient norm {}; {} of trainer_config.max_bad_steps={} in a row)",
            count(new, "step"),
            self.known,
            last.loss(),
            last.grad_norm,
            self.bad.in_a_row,
            self.config().trainer.max_bad_steps
        );
        self.reporter.event(&Event::Warning(&line));
    }

    /// The error of a run that took no step behind `step` any more.
    pub(super) fn too_many_bad(&mut self, step: u64, m: &StepMetrics) -> TrainError {
        self.settle_save();
        let (times, loss, norm) = (self.bad.in_a_row, m.loss(), m.grad_norm);
        TrainError::BadSteps { times, loss, norm, step: step + 1, advice: self.go_on_before(step) }
    }

    /// The error of a run whose validation loss is no number.
    pub(super) fn diverged(&mut self, loss: f64) -> TrainError {
        self.settle_save();
        TrainError::Diverged { step: self.step, loss, advice: self.go_on_before(self.step) }
    }

    /// What to go on from if the weights behind `step` are of no use.
    fn go_on_before(&self, step: u64) -> String {
        let saved = self.saved.iter().chain(&self.saved_before).map(|(path, at)| (path, *at));
        let origin = self.origin.iter().map(|path| (path, self.started));
        let all: Vec<_> = saved.chain(origin).filter(|(path, _)| path.exists()).collect();
        let named = |path: &Path, at: u64| format!("{} (step {at})", path.display());
        let good = all.iter().filter(|(_, at)| *at < step).max_by_key(|(_, at)| *at);
        let same = all.iter().find(|(_, at)| *at >= step);
        let suspect = same.map(|(path, at)| format!(" {} holds the weights that gave it.", named(path, *at)));
        let suspect = suspect.unwrap_or_default();
        match good {
            Some((path, at)) => format!(
                "The last good snapshot is {}: go on from it with a smaller trainer_config.lr.{suspect}",
                named(path, *at)
            ),
            None => format!(
                "There is no good snapshot to go on from.{suspect} Try a smaller trainer_config.lr, or \
                 trainer_config.clip_grad_norm=1"
            ),
        }
    }
}
