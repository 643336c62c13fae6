//! A source with everything that turns one of its rows into a row of a batch.
//!
//! Reading a row never fails and never panics as far as the caller sees: what goes wrong is a [`BadSample`].
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ocelli_ir::rng::{Stream, hash_name, mix};
use thiserror::Error;

use super::lengths::{Lengths, TextLength};
use super::text::{Layout, LossMode, Text};
use crate::image::Warnings;
use crate::memory::Reading;
use crate::sampler::{CaptionLengths, Slot};
use crate::source::{BadSample, Blocks, Groups, Sample, Source};
use crate::stages::{Stage, timed};
use crate::text::printable;
use crate::tokenizer::Tokenizer;

/// The reason of a row whose caption the vocabulary does not hold.
pub const UNKNOWN_CHARACTER: &str = "unknown_character";

/// A source, and how its rows become rows of a batch.
#[derive(Clone)]
pub struct Dataset {
    source: Arc<dyn Source>,
    tokenizer: Arc<dyn Tokenizer>,
    size: usize,
    mode: LossMode,
    end: u32,
    lengths: Lengths,
    /// Draws one of a picture's captions; `None`: each caption is a row.
    random: Option<u64>,
}

/// Why a data set cannot be put together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DatasetError {
    /// The masked loss teaches to stop, so it needs a token for that.
    #[error(
        "data_config.loss=masked needs a tokenizer with an end-of-text token, and this one has none; \
         was it saved by a run with data_config.loss=published?"
    )]
    NoEndOfText,
    /// Pictures without pixels.
    #[error("pictures of 0 x 0 pixels; model_config.img_size must be at least 1")]
    NoPixels,
}

/// A row as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What goes with the picture, among it the whole caption.
    pub sample: Sample,
    /// The caption's ids, cut to the length limit; never empty.
    pub ids: Vec<u32>,
    /// The caption was cut.
    pub cut: bool,
    /// Characters of the caption that the vocabulary lacks, replaced or dropped.
    pub replaced: usize,
}

/// One usable sample, but for its pixels.
pub(crate) struct Row {
    pub(crate) text: Text,
    pub(crate) replaced: usize,
    pub(crate) warnings: Warnings,
}

thread_local! {
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// True on a thread that is just reading a sample. A panic there is caught and becomes a skipped sample, so a
/// panic hook may keep silent about it.
pub fn reading_a_sample() -> bool {
    READING.get()
}

/// Runs `f`; its panic is an error that holds the panic's message.
pub(crate) fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    let before = READING.replace(true);
    // A source is shared and only read: what a panic left half done there can only make more bad samples.
    let result = catch_unwind(AssertUnwindSafe(f));
    READING.set(before);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
    })
}

impl Dataset {
    /// Pictures are scaled to `size x size`.
    pub fn new(
        source: Arc<dyn Source>,
        tokenizer: Arc<dyn Tokenizer>,
        size: usize,
        mode: LossMode,
        lengths: Lengths,
    ) -> Result<Self, DatasetError> {
        if size == 0 {
            return Err(DatasetError::NoPixels);
        }
        let end = match (mode, tokenizer.end_of_text()) {
            (_, Some(end)) => end,
            (LossMode::Masked, None) => return Err(DatasetError::NoEndOfText),
            // Never read: the published loss has no end of the text.
            (LossMode::Published, None) => tokenizer.pad(),
        };
        Ok(Self { source, tokenizer, size, mode, end, lengths, random: None })
    }

    /// Makes a row of each picture instead of each caption: in every pass over the rows one of the picture's
    /// captions is drawn, keyed by `seed`, the pass and the picture.
    #[must_use]
    pub fn with_random_captions(self, seed: u64) -> Self {
        Self { random: Some(seed), ..self }
    }

    /// How many rows there are to draw from: pictures, if captions are drawn at random, else the source's rows.
    pub fn len(&self) -> usize {
        self.drawn_groups().map_or_else(|| self.source.len(), |(groups, _)| groups.pictures())
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The source's row that stands for `row` in the given pass over the rows: known without reading anything.
    pub fn source_row(&self, row: usize, pass: u64) -> usize {
        let Some((groups, seed)) = self.drawn_groups() else { return row };
        let rows = groups.rows_of(row);
        let key = mix(mix(seed ^ hash_name("caption")) ^ pass).wrapping_add(row as u64);
        rows.start + Stream::keyed(key).below((rows.len() as u64).max(1)) as usize
    }

    /// The number by which people know a row of the source.
    pub fn number(&self, row: usize) -> usize {
        caught(|| self.source.number(row)).unwrap_or(row)
    }

    /// Which rows lie together on disk, where that matters.
    pub fn blocks(&self) -> Option<Blocks> {
        let blocks = self.source.blocks()?;
        Some(self.drawn_groups().map_or_else(|| blocks.clone(), |(groups, _)| blocks.of_pictures(groups)))
    }

    fn drawn_groups(&self) -> Option<(&Groups, u64)> {
        Some((self.source.groups()?, self.random?))
    }

    /// Where the rows come from.
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// The same rows from another source of them, such as a cache of this one.
    ///
    /// # Errors
    /// As `from` gives it.
    pub fn from_other<E>(
        &self,
        from: impl FnOnce(Arc<dyn Source>) -> Result<Arc<dyn Source>, E>,
    ) -> Result<Self, E> {
        Ok(Self { source: from(self.source.clone())?, ..self.clone() })
    }

    /// How captions become ids.
    pub fn tokenizer(&self) -> &dyn Tokenizer {
        &*self.tokenizer
    }

    /// The padded lengths.
    pub fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    /// Which places of a caption are learnt.
    pub fn loss_mode(&self) -> LossMode {
        self.mode
    }

    /// Side of the pictures, in pixels.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Characters of the longest caption of a global batch, without reading any: the same on every rank.
    pub(crate) fn longest(&self, slots: &[Slot]) -> usize {
        slots.iter().map(|slot| self.caption_length(slot)).max().unwrap_or(0)
    }

    /// The layout of batches whose longest caption has so many characters. A caption has at most as many ids.
    pub(crate) fn layout(&self, longest: usize) -> Layout {
        let length = self.lengths.batch(longest);
        Layout { mode: self.mode, length, pad: self.tokenizer.pad(), end: self.end }
    }

    /// Reads and encodes a row of the source; its picture into `pixels`, `[S, S, 3]`, which hold anything after an error.
    ///
    /// # Errors
    /// If it cannot be used; a panic on the way is such an error too.
    pub fn see(&self, row: usize, pixels: &mut [u8]) -> Result<Seen, BadSample> {
        caught(|| self.see_row(row, pixels))
            .unwrap_or_else(|panic| Err(bad(&*self.source, row, "decoder_panic", panic)))
    }

    fn see_row(&self, row: usize, pixels: &mut [u8]) -> Result<Seen, BadSample> {
        let _reading = Reading::begin();
        let sample = self.source.read(row, self.size, pixels)?;
        let bad = |reason, detail| bad(&*self.source, row, reason, detail);
        let encoded = timed(Stage::Collate, || self.tokenizer.encode(&sample.caption));
        let encoded = encoded.map_err(|e| bad(UNKNOWN_CHARACTER, e.to_string()))?;
        let (mut ids, limit) = (encoded.ids, self.lengths.limit());
        let cut = ids.len() > limit;
        ids.truncate(limit);
        if ids.is_empty() {
            let shown = printable(sample.caption.as_bytes(), 200);
            let detail = format!("nothing is left of `{shown}` in this vocabulary");
            return Err(bad(UNKNOWN_CHARACTER, detail));
        }
        Ok(Seen { sample, ids, cut, replaced: encoded.replaced })
    }

    /// Bytes of a picture.
    pub fn picture_bytes(&self) -> usize {
        self.size * self.size * 3
    }

    /// Reads and encodes a row for a batch of the given length; its picture as [`see`](Self::see) does.
    pub(crate) fn read(&self, slot: Slot, length: TextLength, pixels: &mut [u8]) -> Result<Row, BadSample> {
        let row = self.source_row(slot.row, slot.pass);
        let Seen { sample, ids, cut, replaced } = self.see(row, pixels)?;
        if ids.len() > length.counted {
            let detail = format!(
                "the caption has {} tokens, more than when the data was opened; did the file change?",
                ids.len()
            );
            return Err(bad(&*self.source, row, "caption_changed", detail));
        }
        Ok(Row { text: Text { ids, cut }, replaced, warnings: sample.warnings })
    }
}

impl CaptionLengths for Dataset {
    fn caption_length(&self, slot: &Slot) -> usize {
        caught(|| self.source.caption_chars(self.source_row(slot.row, slot.pass))).unwrap_or(0)
    }
}

/// Reads a row of a source, whether it has a caption or not, as [`Source::read`] does.
///
/// # Errors
/// If it cannot be used; a panic on the way is such an error too.
pub fn read_sample(
    source: &dyn Source,
    row: usize,
    size: usize,
    pixels: &mut [u8],
) -> Result<Sample, BadSample> {
    let _reading = Reading::begin();
    caught(|| source.read(row, size, pixels))
        .unwrap_or_else(|panic| Err(bad(source, row, "decoder_panic", panic)))
}

fn bad(source: &dyn Source, row: usize, reason: &'static str, detail: String) -> BadSample {
    let what = caught(|| source.describe()).unwrap_or_default();
    let number = caught(|| source.number(row)).unwrap_or(row);
    BadSample { reason, detail, place: format!("{what}, row {number}"), file: what, bytes: None }
}
