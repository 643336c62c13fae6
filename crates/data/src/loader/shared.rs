//! What the loader and its workers share: a window of jobs in order, and who does what next.
//!
//! There are two kinds of work, planning the next batch and reading one row of a planned one. Rows of earlier
//! batches come first. A worker that finds neither reads ahead what the source wants read. One lock guards the window; no work is done under it.
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::job::Job;
use super::{Loaded, LoaderError, LoaderOptions};
use crate::batch::{Batch, Dataset, Memory, caught};
use crate::sampler::{Position, Sampler};

/// Batches at most whose pictures a device still reads when they are given back.
const READ: usize = 3;

/// State shared by all threads of a loader.
pub(super) struct Shared {
    dataset: Arc<Dataset>,
    sampler: Sampler,
    options: LoaderOptions,
    /// Of pictures.
    memory: Memory,
    /// Where the steps of the first epoch are counted from.
    from: Position,
    state: Mutex<State>,
    /// Something may be to do.
    work: Condvar,
    /// The first job may be done.
    ready: Condvar,
}

struct State {
    /// Planned and not handed out, in order.
    window: VecDeque<Entry>,
    /// Where the next job is to be planned.
    cursor: Position,
    /// Someone is planning.
    planning: bool,
    /// Buffers to use again.
    free: Vec<Batch>,
    failed: Option<LoaderError>,
    /// The source may want something read ahead.
    ahead: bool,
    stop: bool,
}

struct Entry {
    job: Arc<Job>,
    /// Rows before this one are taken.
    taken: usize,
}

/// Characters of the longest caption of a step, as its rows are and as they would be in the order of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Longest {
    pub(super) sorted: usize,
    pub(super) unsorted: usize,
}

enum Work {
    Plan(Position, Box<Batch>),
    Fill(Arc<Job>, usize),
    /// Something of use later, as nothing is wanted now.
    Ahead,
}

impl Shared {
    pub(super) fn new(
        dataset: Arc<Dataset>,
        sampler: Sampler,
        from: Position,
        options: LoaderOptions,
        memory: Memory,
    ) -> Self {
        let from = sampler.normalise(from);
        let state = State {
            window: VecDeque::new(),
            cursor: from,
            planning: false,
            free: Vec::new(),
            failed: None,
            ahead: true,
            stop: false,
        };
        let (work, ready) = (Condvar::new(), Condvar::new());
        Self { dataset, sampler, options, memory, from, state: state.into(), work, ready }
    }

    /// The life of a worker.
    pub(super) fn work(&self) {
        let _alarm = Alarm(self);
        loop {
            let mut state = self.lock();
            let work = loop {
                if state.stop || state.failed.is_some() {
                    return;
                }
                match self.take_work(&mut state) {
                    Some(work) => break work,
                    None if state.ahead => break Work::Ahead,
                    None => state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            self.run(work);
        }
    }

    /// The next batch made by the workers.
    pub(super) fn next(&self) -> Option<Result<Loaded, LoaderError>> {
        let mut state = self.lock();
        loop {
            if let Some(out) = self.front(&mut state) {
                drop(state);
                self.work.notify_all();
                return out.transpose();
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next batch, made by this thread.
    pub(super) fn next_here(&self) -> Option<Result<Loaded, LoaderError>> {
        loop {
            let mut state = self.lock();
            if let Some(out) = self.front(&mut state) {
                return out.transpose();
            }
            let work = self.take_work(&mut state);
            drop(state);
            // With no other thread, what is not ready is still to do.
            self.run(work?);
        }
    }

    /// What can be handed out: a batch, an error, or `None` at the end; nothing if that is not known yet.
    fn front(&self, state: &mut State) -> Option<Result<Option<Loaded>, LoaderError>> {
        if let Some(error) = &state.failed {
            return Some(Err(error.clone()));
        }
        match state.window.front() {
            Some(entry) if entry.job.is_done() => {
                let loaded = entry.job.take();
                state.window.pop_front();
                Some(Ok(Some(loaded)))
            }
            None if self.ended(state) => Some(Ok(None)),
            _ => None,
        }
    }

    fn ended(&self, state: &State) -> bool {
        self.options.until_epoch.is_some_and(|end| state.cursor.epoch >= end)
    }

    fn take_work(&self, state: &mut State) -> Option<Work> {
        if let Some(entry) = state.window.iter_mut().find(|e| e.taken < e.job.rows()) {
            entry.taken += 1;
            return Some(Work::Fill(entry.job.clone(), entry.taken - 1));
        }
        if state.planning || state.window.len() >= self.options.ahead || self.ended(state) {
            return None;
        }
        state.planning = true;
        // What a device still reads is not waited for.
        let free = state.free.iter_mut().position(Batch::is_free);
        let batch = free.map_or_else(Batch::default, |i| state.free.swap_remove(i));
        Some(Work::Plan(state.cursor, Box::new(batch)))
    }

    /// Characters of the longest caption of the step that the batch at `position` belongs to.
    fn longest(&self, position: Position) -> Longest {
        let first = if position.epoch == self.from.epoch { self.from.batch } else { 0 };
        let size = self.options.window.max(1) as u64;
        let mut at =
            Position { batch: position.batch - position.batch.wrapping_sub(first) % size, ..position };
        let mut longest = Longest::default();
        for _ in 0..size {
            let batch = self.sampler.batch(at);
            let sorted = self.dataset.longest(&batch.slots);
            longest.sorted = longest.sorted.max(sorted);
            longest.unsorted = longest.unsorted.max(batch.unsorted_longest.unwrap_or(sorted));
            if batch.next.epoch != position.epoch {
                break;
            }
            at = batch.next;
        }
        longest
    }

    fn run(&self, work: Work) {
        match work {
            Work::Plan(position, buffers) => {
                let longest = self.longest(position);
                let job = Job::plan(&self.dataset, &self.sampler, position, longest, *buffers, &self.memory);
                let mut state = self.lock();
                state.planning = false;
                match job {
                    Ok(job) => {
                        state.cursor = job.next;
                        state.ahead = true;
                        state.window.push_back(Entry { job: job.into(), taken: 0 });
                    }
                    Err(error) => state.failed = Some(error),
                }
                drop(state);
                // A batch without rows on this rank is ready at once, and the last one tells of the end.
                self.ready.notify_all();
                self.work.notify_all();
            }
            Work::Ahead => {
                if !caught(|| self.dataset.source().read_ahead()).unwrap_or(false) {
                    self.lock().ahead = false;
                }
            }
            Work::Fill(job, slot) => {
                if job.fill(slot, &self.dataset) {
                    // Under the lock, so that it cannot fall between the other side's look and its wait.
                    let _state = self.lock();
                    self.ready.notify_all();
                }
            }
        }
    }

    /// Keeps buffers for later, no more than can be in use.
    pub(super) fn recycle(&self, batch: Batch) {
        let mut state = self.lock();
        if state.free.len() <= self.options.ahead + READ {
            state.free.push(batch);
        }
    }

    /// Tells the workers to end.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the death of a worker an error instead of a hang.
struct Alarm<'a>(&'a Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().failed = Some(LoaderError::Died);
            self.0.ready.notify_all();
            self.0.work.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Lengths, LossMode, Padding};
    use crate::scan::ContentStats;
    use crate::source::{BadSample, Sample, Source};
    use crate::split::Rows;
    use crate::tokenizer::{CharTokenizer, UnknownPolicy};

    struct One;

    impl Source for One {
        fn len(&self) -> usize {
            1
        }
        fn caption_chars(&self, _: usize) -> usize {
            1
        }
        fn caption(&self, _: usize) -> Result<String, BadSample> {
            Ok("a".to_owned())
        }
        fn read(&self, _: usize, _: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
            pixels.fill(1);
            Ok(Sample { caption: "a".to_owned(), original: (1, 1), warnings: Default::default() })
        }
        fn describe(&self) -> String {
            "one".to_owned()
        }
        fn fingerprint(&self) -> u64 {
            0
        }
    }

    /// A worker that dies outside of reading a sample is an error for the one who waits, not a hang.
    #[test]
    fn a_dead_worker_is_noticed() {
        let tokenizer = CharTokenizer::learn(['a'], true, UnknownPolicy::Error).unwrap();
        let lengths = Lengths::plan(Padding::Longest, None, &ContentStats::scan(&One)).unwrap();
        let dataset = Dataset::new(Arc::new(One), Arc::new(tokenizer), 2, LossMode::Masked, lengths).unwrap();
        let sampler = Sampler::in_order(Rows::all(1), 1).unwrap();
        let options = LoaderOptions { workers: 0, ahead: 1, until_epoch: None, window: 1 };
        let shared = Arc::new(Shared::new(
            Arc::new(dataset),
            sampler,
            Position::default(),
            options,
            crate::batch::plain(),
        ));
        let other = shared.clone();
        let worker = std::thread::spawn(move || {
            let _alarm = Alarm(&other);
            std::thread::sleep(std::time::Duration::from_millis(20));
            panic!("on purpose");
        });
        assert_eq!(shared.next(), Some(Err(LoaderError::Died)));
        assert!(worker.join().is_err());
    }
}
