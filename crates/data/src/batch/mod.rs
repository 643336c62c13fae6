//! A batch: what one rank trains on in one step, laid out for the device.
//!
//! The model puts one soft image token before `T` text tokens, so logits are `[B, T + 1, V]`; `targets` and
//! `weights` have that shape too, and their place 0 is the image's. Every batch has all `B` rows: a row that
//! is absent (end of an epoch) or bad (see [`Skipped`]) has weight 0, black pixels and only padding.
//! Pixels stay 8-bit: they are normalised on the device.
mod dataset;
mod lengths;
mod text;

use std::sync::Arc;

use ocelli_ir::executor::HostBytes;
use thiserror::Error;

use crate::image::Warnings;
use crate::source::BadSample;

pub use dataset::{Dataset, DatasetError, Seen, UNKNOWN_CHARACTER, read_sample, reading_a_sample};
pub use lengths::{Lengths, LengthsError, MAX_BUCKETS, Padding, TextLength};
pub use text::LossMode;

pub(crate) use dataset::{Row, caught};
pub(crate) use text::Layout;

/// A row that was drawn and could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Which row of the batch.
    pub slot: usize,
    /// Which row of the data set: the same for all captions of a picture, if they are drawn at random.
    pub row: usize,
    /// The number by which people know the row.
    pub number: usize,
    /// Why.
    pub why: BadSample,
}

/// A row that was used and has something to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Which row of the batch.
    pub slot: usize,
    /// Its row number in the source.
    pub row: usize,
    /// Its caption was cut to the length limit.
    pub cut: bool,
    /// Characters of its caption that were replaced or dropped because the vocabulary lacks them.
    pub replaced: usize,
    /// What its picture's file gives reason to report.
    pub warnings: Warnings,
}

/// One rank's share of a global batch. Shapes: `B` = [`rows`](Self::rows), `T` = [`text_len`](Self::text_len),
/// `S` = [`size`](Self::size); all arrays are row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// `B`, the same in every batch.
    pub rows: usize,
    /// `T`, one of the set's [`Lengths::buckets`], the same on every rank.
    pub text_len: usize,
    /// `S`, side of the pictures in pixels.
    pub size: usize,
    /// `[B, S, S, 3]`, RGB.
    pub images: HostBytes,
    /// `[B, T]`: the caption, then padding.
    pub tokens: Vec<u32>,
    /// `[B, T + 1]`: what each place should predict; padding where the weight is 0.
    pub targets: Vec<u32>,
    /// `[B, T + 1]`: 1 where the target counts, else 0.
    pub weights: Vec<f32>,
    /// `[B]`: the row's place in the whole run's stream of samples, low 32 bits; keys dropout.
    pub sample_index: Vec<u32>,
    /// The sum of `weights`, exact.
    pub tokens_weight: f32,
    /// Rows with a usable sample. With `skipped` they make up the rows drawn; the others are absent.
    pub real_rows: usize,
    /// The rows that could not be used, in order.
    pub skipped: Vec<Skipped>,
    /// The usable rows that are not quite as they should be, in order.
    pub flaws: Vec<Flaw>,
}

/// Where the memory of pictures comes from: so many zeros, or none if there is not so much. A device may have memory that it
/// copies by itself.
pub type Memory = Arc<dyn Fn(usize) -> Option<HostBytes> + Send + Sync>;

/// Memory like any other.
pub fn plain() -> Memory {
    Arc::new(HostBytes::plain)
}

/// The memory for a batch could not be had.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "no memory for a batch of {rows} pictures of {size}x{size} pixels and {text_len} tokens; \
     lower train_batch_size or img_size"
)]
pub struct NoMemory {
    /// `B`.
    pub rows: usize,
    /// `S`.
    pub size: usize,
    /// `T`.
    pub text_len: usize,
}

impl Batch {
    /// Takes on a shape, keeping the buffers; but pictures that someone still reads are left to them. What the rows hold is
    /// undefined until each is filled.
    pub(crate) fn reshape(
        &mut self,
        rows: usize,
        text_len: usize,
        size: usize,
        memory: &Memory,
    ) -> Result<(), NoMemory> {
        let none = NoMemory { rows, size, text_len };
        let product = |a: usize, b: usize| a.checked_mul(b).ok_or(none);
        let pixels = product(product(product(size, size)?, 3)?, rows)?;
        let places = product(rows, text_len.checked_add(1).ok_or(none)?)?;
        if !self.is_free() || !self.images.set_len(pixels) {
            self.images = memory(pixels).ok_or(none)?;
        }
        resize(&mut self.tokens, places - rows).ok_or(none)?;
        resize(&mut self.targets, places).ok_or(none)?;
        resize(&mut self.weights, places).ok_or(none)?;
        resize(&mut self.sample_index, rows).ok_or(none)?;
        self.skipped.clear();
        self.flaws.clear();
        (self.rows, self.text_len, self.size) = (rows, text_len, size);
        (self.tokens_weight, self.real_rows) = (0.0, 0);
        Ok(())
    }

    /// True if no one else reads its pictures.
    pub(crate) fn is_free(&mut self) -> bool {
        self.images.is_free()
    }

    /// Puts a usable sample, the source's `row`, into row `slot`; its picture is not written here.
    pub(crate) fn put(&mut self, slot: usize, row: usize, read: &Row, layout: &Layout) {
        let (tokens, targets, weights) = self.row_mut(slot);
        layout.fill(&read.text, tokens, targets, weights);
        self.real_rows += 1;
        let (cut, replaced, warnings) = (read.text.cut, read.replaced, read.warnings);
        if cut || replaced > 0 || !warnings.is_empty() {
            self.flaws.push(Flaw { slot, row, cut, replaced, warnings });
        }
    }

    /// Makes row `slot` count for nothing; its picture is to be black.
    pub(crate) fn blank(&mut self, slot: usize, layout: &Layout) {
        let (tokens, targets, weights) = self.row_mut(slot);
        layout.blank(tokens, targets, weights);
    }

    /// One row of tokens, targets and weights.
    fn row_mut(&mut self, slot: usize) -> (&mut [u32], &mut [u32], &mut [f32]) {
        let t = self.text_len;
        (
            &mut self.tokens[slot * t..][..t],
            &mut self.targets[slot * (t + 1)..][..t + 1],
            &mut self.weights[slot * (t + 1)..][..t + 1],
        )
    }

    /// To be called when every row is filled: what depends on all of them.
    pub(crate) fn finish(&mut self) {
        self.skipped.sort_by_key(|s| s.slot);
        self.flaws.sort_by_key(|f| f.slot);
        // A sum of ones: exact up to 2^24 places.
        self.tokens_weight = self.weights.iter().sum();
    }
}

/// Sets the length of `v`, or nothing if there is no memory for it.
fn resize<T: Copy + Default>(v: &mut Vec<T>, len: usize) -> Option<()> {
    v.try_reserve(len.saturating_sub(v.len())).ok()?;
    v.resize(len, T::default());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_are_refused_and_buffers_stay() {
        let mut batch = Batch::default();
        batch.reshape(2, 7, 4, &plain()).unwrap();
        let at = batch.images.as_ptr();
        batch.reshape(1, 3, 4, &plain()).unwrap();
        batch.reshape(2, 7, 4, &plain()).unwrap();
        assert_eq!(at, batch.images.as_ptr());
        assert_eq!((batch.images.len(), batch.tokens.len(), batch.weights.len()), (96, 14, 16));
        for (rows, text_len, size) in
            [(usize::MAX, 7, 4), (2, usize::MAX, 4), (2, 7, usize::MAX), (1, 1, 1 << 30)]
        {
            assert_eq!(batch.reshape(rows, text_len, size, &plain()), Err(NoMemory { rows, size, text_len }));
        }
        assert_eq!(at, batch.images.as_ptr());
    }

    #[test]
    fn pictures_that_are_read_elsewhere_stay_as_they_are() {
        let mut batch = Batch::default();
        batch.reshape(2, 7, 4, &plain()).unwrap();
        let read = batch.images.clone();
        assert!(!batch.is_free());
        batch.reshape(2, 7, 4, &plain()).unwrap();
        assert!(batch.is_free() && batch.images.as_ptr() != read.as_ptr());
    }
}
