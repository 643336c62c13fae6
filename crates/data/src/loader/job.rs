//! A batch in the making. Its rows are read by any threads in any order; each decodes into its own row of the batch. A
//! lock is held only while the few numbers of a caption are put in.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use super::rows::Rows;
use super::shared::Longest;
use super::{Loaded, LoaderError};
use crate::batch::{Batch, Dataset, Layout, Memory, NoMemory, Skipped};
use crate::sampler::{Position, Sampler, Slot};
use crate::stages::{Stage, timed};

/// A planned batch: which rows, which shape; and how far it is.
pub(super) struct Job {
    position: Position,
    pub(super) next: Position,
    unsorted_text: usize,
    /// This rank's rows: the present ones, which come first.
    slots: Vec<Slot>,
    layout: Layout,
    /// Without its pictures, until it is taken.
    batch: Mutex<Batch>,
    /// The pictures; none when they were taken.
    pictures: RwLock<Option<Rows>>,
    /// Rows not yet filled.
    left: AtomicUsize,
}

impl Job {
    /// Plans the batch at `position` into the buffers of `batch`, or `memory`, for captions of up to so many characters;
    /// absent rows are filled at once.
    pub(super) fn plan(
        dataset: &Dataset,
        sampler: &Sampler,
        position: Position,
        longest: Longest,
        mut batch: Batch,
        memory: &Memory,
    ) -> Result<Self, LoaderError> {
        let global = sampler.batch(position);
        let layout = dataset.layout(longest.sorted);
        let unsorted_text = dataset.layout(longest.unsorted).length.padded;
        let options = sampler.options();
        let slots = global.of_rank(options).to_vec();
        let (rows, text_len, size) = (options.batch_per_rank, layout.length.padded, dataset.size());
        batch.reshape(rows, text_len, size, memory)?;
        let first = global.start.wrapping_add((options.rank * options.batch_per_rank) as u64);
        for (i, index) in batch.sample_index.iter_mut().enumerate() {
            *index = slots.get(i).map_or(first.wrapping_add(i as u64) as u32, |slot| slot.sample_index);
        }
        for slot in slots.len()..options.batch_per_rank {
            batch.blank(slot, &layout);
        }
        let bytes = dataset.picture_bytes();
        let mut images = std::mem::take(&mut batch.images);
        // It has no other handle: `reshape` saw to that.
        images.get_mut().into_iter().for_each(|images| images[slots.len() * bytes..].fill(0));
        let pictures = Rows::divide(images, bytes).ok_or(NoMemory { rows, size, text_len })?;
        let pictures = RwLock::new(Some(pictures));
        let left = AtomicUsize::new(slots.len());
        let (position, next, batch) = (global.position, global.next, batch.into());
        Ok(Self { position, next, unsorted_text, slots, layout, batch, pictures, left })
    }

    /// How many rows are to be read.
    pub(super) fn rows(&self) -> usize {
        self.slots.len()
    }

    /// Reads row `slot`; true if it was the last one missing.
    pub(super) fn fill(&self, slot: usize, dataset: &Dataset) -> bool {
        let drawn = self.slots[slot];
        let read = |pixels: &mut [u8]| {
            let read = dataset.read(drawn, self.layout.length, pixels);
            if read.is_err() {
                pixels.fill(0);
            }
            read
        };
        let pictures = self.pictures.read().unwrap_or_else(PoisonError::into_inner);
        // They are taken when no row is left, and this one is.
        let Some(read) = pictures.as_ref().map(|rows| rows.with(slot, read)) else { return false };
        drop(pictures);
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(read) => timed(Stage::Collate, || batch.put(slot, drawn.row, &read, &self.layout)),
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
        let pictures = self.pictures.write().unwrap_or_else(PoisonError::into_inner).take();
        batch.images = pictures.map(Rows::join).unwrap_or_default();
        batch.finish();
        Loaded { batch, position: self.position, next: self.next, unsorted_text: self.unsorted_text }
    }
}
