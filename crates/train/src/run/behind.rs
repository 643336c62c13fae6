//! What the device knows of a run and the host does not yet: the metrics of the last attempts at a step.
//!
//! They come to the host while the device goes on; who needs to know of all of them, as a snapshot does, waits ([`Run::flush`]).
//!
//! Invariants: each attempt is taken up once, in its order, with what the host knew when it was queued, and the true number
//! of its step, for the device alone knows which attempts were steps. So what is written and told does not depend on when rows
//! arrive; only the end of a run for too many bad steps may come some steps late.

use super::{Run, metrics};
use crate::engine::Metrics;
use crate::error::TrainError;
use crate::program::RING_ROWS;
use crate::report::Event;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Attempts that metrics on their way may be behind before they are waited for.
const LATEST: u64 = 32;
/// Attempts without a reading, at most: some more may be queued until it was made, and the ring must still have all.
const MOST: usize = RING_ROWS / 2;

/// What the host knows of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Epoch of its last batch.
    pub epoch: u64,
    /// Real samples.
    pub samples: u64,
    /// Time spent waiting for its batches.
    pub waiting: Duration,
    /// Time that the rest of it took.
    pub working: Duration,
}

/// Attempts whose metrics the host has not seen.
#[derive(Debug, Default)]
pub struct Behind {
    attempts: VecDeque<Attempt>,
    /// Metrics of the first of them, on their way.
    coming: Option<Metrics>,
}

impl Behind {
    /// One more.
    pub fn add(&mut self, attempt: Attempt) {
        self.attempts.push_back(attempt);
    }
}

impl Run<'_> {
    /// Takes up what has arrived, and sends for more if a line or a report is due. Waits for nothing, unless the host is
    /// too far ahead.
    pub(super) fn follow(&mut self) -> Result<(), TrainError> {
        loop {
            self.behind.coming = match self.behind.coming.take() {
                None if self.owed() => Some(self.send_for()?),
                None => return Ok(()),
                Some(coming) if coming.ready()? || self.attempts - coming.to() >= LATEST => {
                    self.take_up(coming)?;
                    None
                }
                waiting => {
                    self.behind.coming = waiting;
                    return Ok(());
                }
            };
        }
    }

    /// Takes up everything, however long it takes: behind this, the count of steps is the device's. False if the newest
    /// attempt was no step.
    pub(super) fn flush(&mut self) -> Result<bool, TrainError> {
        // What is on its way is not all.
        self.behind.coming = None;
        if self.behind.attempts.is_empty() {
            return Ok(true);
        }
        let all = self.send_for()?;
        self.take_up(all)
    }

    /// Metrics of all attempts that the host has not seen.
    fn send_for(&self) -> Result<Metrics, TrainError> {
        let seen = self.attempts - self.behind.attempts.len() as u64;
        Ok(self.engine.begin_metrics(seen, self.attempts)?)
    }

    /// Among the attempts that the host has not seen may be one behind which something is due.
    fn owed(&self) -> bool {
        let t = &self.request.config.trainer;
        let passed = |n: u64| self.known / n < self.step / n;
        passed(if t.log_verbose { 1 } else { t.log_interval }) || self.behind.attempts.len() >= MOST
    }

    /// Writes a line for each row, reports where that is due, and ends the run if too many steps in a row were bad. False if the
    /// newest was no step.
    fn take_up(&mut self, rows: Metrics) -> Result<bool, TrainError> {
        let begin = Instant::now();
        let rows = rows.take()?;
        self.waited(begin.elapsed());
        let (mut told, mut stepped) = (self.told(), true);
        for m in &rows {
            let Some(attempt) = self.behind.attempts.pop_front() else { break };
            self.window.add(attempt.samples, attempt.waiting, attempt.working);
            if m.weight == 0.0 {
                continue;
            }
            stepped = m.taken();
            if stepped {
                self.known += 1;
                self.bad.in_a_row = 0;
                self.last = Some(*m);
                self.loss = (self.loss.0 + f64::from(m.loss_sum), self.loss.1 + f64::from(m.weight));
                told.lines.push(metrics::step_line(attempt.epoch, self.known, m));
                self.tell_step(attempt, &mut told)?;
                continue;
            }
            self.step -= 1;
            if m.overflowed() {
                told.overflowed.push(m.loss_scale);
                told.lines.push(metrics::overflow_line(attempt.epoch, m));
                continue;
            }
            self.bad.add(m);
            told.lines.push(metrics::bad_line(attempt.epoch, self.known, m));
            if self.bad.in_a_row >= self.config().trainer.max_bad_steps {
                self.log(&told.lines)?;
                return Err(self.too_many_bad(self.known, m));
            }
        }
        self.tell(&mut told)?;
        Ok(stepped)
    }

    /// What is due behind a step that was taken.
    fn tell_step(&mut self, attempt: Attempt, told: &mut super::progress::Told) -> Result<(), TrainError> {
        let (epoch, step, t) = (attempt.epoch, self.known, &self.request.config.trainer);
        let (line, report) = (t.log_verbose, step.is_multiple_of(t.log_interval) || step == self.total);
        if line || report {
            self.tell(told)?;
        }
        if line {
            let time = attempt.waiting + attempt.working;
            self.reporter.event(&Event::Step { epoch, step, time });
        }
        if report { self.progress(epoch) } else { Ok(()) }
    }

    /// Time that the host waited for the device is time of the newest attempt.
    fn waited(&mut self, time: Duration) {
        self.whole.time += time;
        if let Some(newest) = self.behind.attempts.back_mut() {
            newest.working += time;
        }
    }
}
