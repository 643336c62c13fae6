//! What is due behind a step: its line, a report, a snapshot, a validation.
//!
//! Invariant: nothing is due twice, and nothing is passed. The host's count of steps is never behind the device's, which
//! alone knows of overflows; so where the host's count says that something is due, the ring is read, and asked again
//! is the true count.

use super::Run;
use super::step::Taken;
use crate::error::TrainError;
use crate::program::RING_ROWS;
use ocelli_config::TrainerConfig;

/// What is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The step's own line.
    pub line: bool,
    /// A report.
    pub report: bool,
    /// A snapshot.
    pub save: bool,
    /// A validation.
    pub validate: bool,
}

impl Due {
    /// Behind `step`, the last of which is `total`.
    fn at(step: u64, total: u64, t: &TrainerConfig) -> Self {
        let every = |interval: Option<u64>| interval.is_some_and(|n| step.is_multiple_of(n));
        Self {
            line: t.log_verbose,
            report: every(Some(t.log_interval)) || step == total,
            save: every(t.snapshot_interval),
            validate: every(t.eval_interval),
        }
    }
}

impl Run<'_> {
    /// Reads the ring back if it is time to, and says what is due behind what was just taken.
    pub(super) fn look(&mut self, taken: Taken) -> Result<Due, TrainError> {
        let none = Due::default();
        let due = |run: &Self| Due::at(run.step, run.total, &run.request.config.trainer);
        let reached = matches!(taken, Taken::Step { .. }) && due(self) != none;
        if reached || self.epoch_ended() || self.attempts - self.flushed >= RING_ROWS as u64 / 2 {
            let stepped = self.flush()?;
            return Ok(if reached && stepped { due(self) } else { none });
        }
        Ok(none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_interval_and_the_last_step_is_told() {
        let t = TrainerConfig {
            log_interval: 4,
            snapshot_interval: Some(6),
            eval_interval: None,
            ..TrainerConfig::default()
        };
        let at = |step| Due::at(step, 13, &t);
        assert_eq!(at(5), Due::default());
        assert_eq!(at(4), Due { report: true, ..Due::default() });
        assert_eq!(at(12), Due { report: true, save: true, ..Due::default() });
        assert_eq!(at(13), Due { report: true, ..Due::default() });
    }
}
