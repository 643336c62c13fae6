//! A batch in the making. Its rows are read by any threads in any order; each writes its own row.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Loaded, LoaderError};
use crate::batch::{Batch, Dataset, Layout, Skipped};
use crate::sampler::{Position, Sampler, Slot};

/// A planned batch: which rows, which shape; and how far it is.
pub(super) struct Job {
    position: Position,
    pub(super) next: Position,
    /// This rank's rows: the present ones, which come first.
    slots: Vec<Slot>,
    layout: Layout,
    batch: Mutex<Batch>,
    /// Rows not yet filled.
    left: AtomicUsize,
}

impl Job {
    /// Plans the batch at `position` into the buffers of `batch`, for captions of up to `longest` characters; absent rows
    /// are filled at once.
    pub(super) fn plan(
        dataset: &Dataset,
        sampler: &Sampler,
        position: Position,
        longest: usize,
        mut batch: Batch,
    ) -> Result<Self, LoaderError> {
        let global = sampler.batch(position);
        let layout = dataset.layout(longest);
        let options = sampler.options();
        let slots = global.of_rank(options).to_vec();
        batch.reshape(options.batch_per_rank, layout.length.padded, dataset.size())?;
        let first = global.start.wrapping_add((options.rank * options.batch_per_rank) as u64);
        for (i, index) in batch.sample_index.iter_mut().enumerate() {
            *index = first.wrapping_add(i as u64) as u32;
        }
        for slot in slots.len()..options.batch_per_rank {
            batch.blank(slot, &layout);
        }
        let left = AtomicUsize::new(slots.len());
        Ok(Self { position: global.position, next: global.next, slots, layout, batch: batch.into(), left })
    }

    /// How many rows are to be read.
    pub(super) fn rows(&self) -> usize {
        self.slots.len()
    }

    /// Reads row `slot`; true if it was the last one missing.
    pub(super) fn fill(&self, slot: usize, dataset: &Dataset) -> bool {
        let drawn = self.slots[slot];
        let read = dataset.read(drawn, self.layout.length);
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(read) => batch.put(slot, drawn.row, &read, &self.layout),
            Err(why) => {
                batch.blank(slot, &self.layout);
                let number = dataset.number(dataset.source_row(drawn.row, drawn.pass));
                batch.skipped.push(Skipped { slot, row: drawn.row, number, why });
            }
        }
        drop(batch);
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// True if every row is filled.
    pub(super) fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Takes the batch out of a job that is done.
    pub(super) fn take(&self) -> Loaded {
        let mut batch = std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner));
        batch.finish();
        Loaded { batch, position: self.position, next: self.next }
    }
}
