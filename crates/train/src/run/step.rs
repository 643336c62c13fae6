//! One optimiser step: over one batch, or over several whose gradients are summed (`trainer_config.grad_accum`).

use super::Run;
use super::tally::Part;
use crate::error::TrainError;
use crate::report::Event;
use ocelli_data::loader::Loaded;
use std::time::{Duration, Instant};

/// The batches of a step that has not ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Under {
    batches: usize,
    samples: u64,
    has_weight: bool,
    waiting: Duration,
    working: Duration,
}

/// What a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing: the step takes more batches.
    Part,
    /// A step.
    Step,
    /// An attempt at a step that was none, for want of weight.
    NoStep,
}

impl Run<'_> {
    /// True between steps: only then may the run be saved or end.
    pub(super) fn between_steps(&self) -> bool {
        self.under.batches == 0
    }

    /// Trains on a batch. A step ends with its last batch, or, in fewer, with the epoch.
    pub(super) fn take(&mut self, loaded: &Loaded, waiting: Duration) -> Result<Taken, TrainError> {
        let batch = &loaded.batch;
        self.position = loaded.next;
        self.epoch = loaded.position.epoch;
        let ends = self.under.batches + 1 >= self.config().trainer.grad_accum || self.epoch_ended();
        let begin = Instant::now();
        self.engine.train(batch, ends)?;
        self.batches += 1;
        let under = &mut self.under;
        under.batches += 1;
        under.samples += batch.real_rows as u64;
        under.has_weight |= batch.tokens_weight > 0.0;
        under.waiting += waiting;
        under.working += begin.elapsed();
        self.note_odd(Part::Training, batch)?;
        if ends { Ok(self.step_ended()) } else { Ok(Taken::Part) }
    }

    fn step_ended(&mut self) -> Taken {
        let Under { samples, has_weight, waiting, working, .. } = std::mem::take(&mut self.under);
        self.attempts += 1;
        self.window.add(samples, waiting, working);
        self.whole.add(samples, waiting, working);
        // Without weight there is no step (the device decides the same).
        if !has_weight {
            return Taken::NoStep;
        }
        self.step += 1;
        if self.config().trainer.log_verbose {
            let (epoch, step, time) = (self.epoch, self.step, waiting + working);
            self.reporter.event(&Event::Step { epoch, step, time });
        }
        Taken::Step
    }
}
