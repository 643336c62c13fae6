//! Rows with captions of like length in one batch, so that little of it is padding (`data_config.bucket`).
//!
//! The stream is cut into windows of [`BUCKET_WINDOW`] full global batches. Within a window rows are sorted by the length
//! of their caption and cut into batches, which are then shuffled. A batch is still a function of (seed, position): the
//! rows of a window, their lengths and the order follow from where it lies. The short batch of an epoch's end is in no
//! window and stays as it is.
use std::sync::Arc;

use super::Slot;
use super::memo::Memo;
use super::permutation::Permutation;

/// Global batches of a window. With more of them batches are more alike within, and an epoch is shuffled less.
pub const BUCKET_WINDOW: u64 = 32;

/// How long the caption of a drawn row is, known without reading it, the same on every rank.
pub trait CaptionLengths: Send + Sync {
    /// In characters; 0 if the row has no usable caption.
    fn caption_length(&self, slot: &Slot) -> usize;
}

/// Sorts windows by length.
#[derive(Clone)]
pub(super) struct Buckets {
    pub(super) lengths: Arc<dyn CaptionLengths>,
    windows: Arc<Memo<(u64, u64), Sorted>>,
}

impl std::fmt::Debug for Buckets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Buckets")
    }
}

/// A window.
#[derive(Debug)]
pub(super) struct Sorted {
    /// Its rows, batch by batch.
    slots: Vec<Slot>,
    /// Of each batch the longest caption that it would have had in the order of the stream.
    plain: Vec<usize>,
}

impl Buckets {
    pub(super) fn new(lengths: Arc<dyn CaptionLengths>) -> Self {
        Self { lengths, windows: Arc::default() }
    }

    /// The window of `rows` places of the stream from `start` on, in batches of `size`; `draw` gives its rows.
    pub(super) fn window(
        &self,
        seed: u64,
        (start, rows): (u64, u64),
        size: usize,
        draw: impl FnOnce() -> Vec<Slot>,
    ) -> Arc<Sorted> {
        self.windows.get((start, rows), || {
            let mut drawn: Vec<(usize, Slot)> =
                draw().into_iter().map(|slot| (self.lengths.caption_length(&slot), slot)).collect();
            let longest = |rows: &[(usize, Slot)]| rows.iter().map(|row| row.0).max().unwrap_or(0);
            let plain: Vec<usize> = drawn.chunks(size).map(longest).collect();
            // Equal lengths stay in the order of the stream.
            drawn.sort_by_key(|row| row.0);
            let order = Permutation::new(plain.len() as u64, seed, "bucket order", start);
            let batch = |i: u64| drawn.chunks(size).nth(order.at(i) as usize).unwrap_or_default();
            let slots = (0..plain.len() as u64).flat_map(batch).map(|row| row.1).collect();
            Sorted { slots, plain }
        })
    }
}

impl Sorted {
    /// The rows of the window's `i`-th batch, and the longest caption that it would have had.
    pub(super) fn batch(&self, i: usize, size: usize) -> (Vec<Slot>, Option<usize>) {
        let slots = self.slots.chunks(size).nth(i).unwrap_or_default();
        (slots.to_vec(), self.plain.get(i).copied())
    }
}
