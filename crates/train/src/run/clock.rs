//! Where the time of training goes, between two reports and over the whole run.

use std::time::Duration;

/// Sums over some steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Steps.
    pub steps: u64,
    /// Real samples.
    pub samples: u64,
    /// Time of whole steps.
    pub time: Duration,
    /// Of it, time spent waiting for a batch.
    pub waiting: Duration,
}

impl Window {
    /// Adds a step.
    pub fn add(&mut self, samples: u64, waiting: Duration, working: Duration) {
        self.steps += 1;
        self.samples += samples;
        self.time += waiting + working;
        self.waiting += waiting;
    }

    /// Real samples a second.
    pub fn images_per_s(&self) -> f64 {
        self.samples as f64 / self.time.as_secs_f64().max(1e-9)
    }

    /// Milliseconds a step.
    pub fn ms_per_step(&self) -> f64 {
        self.time.as_secs_f64() * 1e3 / self.steps.max(1) as f64
    }

    /// Share of the time spent waiting for data.
    pub fn data_wait(&self) -> f64 {
        self.waiting.as_secs_f64() / self.time.as_secs_f64().max(1e-9)
    }
}
