//! What is due behind a step that the host cannot do without knowing of all steps before it: a snapshot, a validation, the end.
//! Lines and reports are due behind what was read back (`behind.rs`), whenever that is.
//!
//! Invariant: nothing is due twice, and nothing is passed. The host's count of steps is never behind the device's, which
//! alone knows of overflows; so where the host's count says that something is due, the host waits for the device, and asked
//! again is the true count.

use super::Run;
use super::step::Taken;
use crate::error::TrainError;
use ocelli_config::TrainerConfig;

/// What is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// A snapshot.
    pub save: bool,
    /// A validation.
    pub validate: bool,
    /// The end.
    pub end: bool,
}

impl Due {
    /// Behind `step`, the last of which is `total`.
    fn at(step: u64, total: u64, t: &TrainerConfig) -> Self {
        let every = |interval: Option<u64>| interval.is_some_and(|n| step.is_multiple_of(n));
        Self { save: every(t.snapshot_interval), validate: every(t.eval_interval), end: step == total }
    }
}

impl Run<'_> {
    /// Looks for what was read back, and waits for all of it if anything is due behind what was just taken; says what.
    pub(super) fn look(&mut self, taken: Taken) -> Result<Due, TrainError> {
        let none = Due::default();
        let due = |run: &Self| Due::at(run.step, run.total, &run.request.config.trainer);
        let reached = taken == Taken::Step && due(self) != none;
        if !reached && !self.epoch_ended() {
            self.follow()?;
            return Ok(none);
        }
        let stepped = self.flush()?;
        Ok(if reached && stepped { due(self) } else { none })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_interval_and_so_has_the_end() {
        let t = TrainerConfig { snapshot_interval: Some(6), eval_interval: None, ..TrainerConfig::default() };
        let at = |step| Due::at(step, 13, &t);
        assert_eq!(at(5), Due::default());
        assert_eq!(at(12), Due { save: true, ..Due::default() });
        assert_eq!(at(13), Due { end: true, ..Due::default() });
    }
}
