//! One optimiser step: over one batch, or over several whose gradients are summed (`trainer_config.grad_accum`).

use super::Run;
use super::behind::Attempt;
use super::tally::Part;
use crate::error::TrainError;
use ocelli_data::loader::Loaded;
use ocelli_data::sampler::Position;
use std::time::{Duration, Instant};

/// The batches of a step that has not ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Under {
    batches: usize,
    /// Position and epoch before the first of them.
    before: (Position, u64),
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
    /// A step, unless its gradient overflowed.
    Step,
    /// An attempt at a step that was none, for want of weight.
    NoStep,
}

impl Run<'_> {
    /// Gives up the batches of a step that has not ended: only between steps may the run be saved or end. It stands
    /// again where its last step ended.
    pub(super) fn give_up_step(&mut self) -> Result<(), TrainError> {
        let Under { batches, before, .. } = std::mem::take(&mut self.under);
        if batches > 0 {
            (self.position, self.epoch) = before;
            self.batches -= batches as u64;
            self.engine.forget(batches as u32)?;
        }
        Ok(())
    }

    /// Trains on a batch. A step ends with its last batch, or, in fewer, with the epoch.
    pub(super) fn take(&mut self, loaded: &Loaded, waiting: Duration) -> Result<Taken, TrainError> {
        let batch = &loaded.batch;
        if self.under.batches == 0 {
            self.under.before = (self.position, self.epoch);
        }
        self.position = loaded.next;
        self.epoch = loaded.position.epoch;
        let ends = self.under.batches + 1 >= self.config().trainer.grad_accum || self.epoch_ended();
        let begin = Instant::now();
        self.engine.train(batch, ends)?;
        self.batches += 1;
        self.padding.add(loaded, self.data.tokenizer.pad());
        let under = &mut self.under;
        under.batches += 1;
        under.samples += batch.real_rows as u64;
        under.has_weight |= batch.tokens_weight > 0.0;
        under.waiting += waiting;
        under.working += begin.elapsed();
        let taken = if ends { self.step_ended() } else { Taken::Part };
        // Last: if it cannot be written down, the step is saved all the same.
        self.note_odd(Part::Training, batch)?;
        Ok(taken)
    }

    fn step_ended(&mut self) -> Taken {
        let Under { samples, has_weight, waiting, working, .. } = std::mem::take(&mut self.under);
        self.attempts += 1;
        self.behind.add(Attempt { epoch: self.epoch, samples, waiting, working });
        self.whole.add(samples, waiting, working);
        // Without weight there is no step (the device decides the same).
        if !has_weight {
            return Taken::NoStep;
        }
        self.weighted = true;
        self.step += 1;
        Taken::Step
    }
}
