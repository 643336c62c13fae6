//! A small source in memory whose rows can be told apart by their pixels, and short ways to make the rest.
#![allow(dead_code, missing_docs)] // Each test file uses a part.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ocelli_data::batch::{Batch, Dataset, Lengths, LossMode, Padding};
use ocelli_data::image::Warnings;
use ocelli_data::loader::{Loaded, Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler, SamplerOptions};
use ocelli_data::scan::ContentStats;
use ocelli_data::source::{BadSample, Sample, Source};
use ocelli_data::split::Rows;
use ocelli_data::tokenizer::{CharTokenizer, UnknownPolicy};

/// Side of the test pictures.
pub const SIZE: usize = 4;

#[derive(Default)]
pub struct Memory {
    pub captions: Vec<String>,
    pub bad: BTreeSet<usize>,
    pub panics: BTreeSet<usize>,
    /// Rows with a warning.
    pub warned: BTreeSet<usize>,
    /// Added to what `caption_chars` tells.
    pub lie: isize,
    /// `caption_chars` panics for the rows that panic, too.
    pub chars_panic: bool,
    pub delay: Option<fn(usize) -> Duration>,
    pub reads: AtomicUsize,
}

impl Memory {
    /// `n` rows with captions of 1 to 30 characters.
    pub fn numbered(n: usize) -> Self {
        let caption = |row: usize| "abcdefghijklmnopqrstuvwxyz abc"[..1 + row * 7 % 30].to_owned();
        Self { captions: (0..n).map(caption).collect(), ..Self::default() }
    }

    pub fn of(captions: &[&str]) -> Self {
        Self { captions: captions.iter().map(|&c| c.to_owned()).collect(), ..Self::default() }
    }
}

/// The pixels of `row`: it can be read off them.
pub fn pixels(row: usize) -> Vec<u8> {
    (0..SIZE * SIZE * 3).map(|i| row.to_le_bytes()[i % 4] ^ i as u8 ^ 0x55).collect()
}

impl Source for Memory {
    fn len(&self) -> usize {
        self.captions.len()
    }

    fn caption_chars(&self, row: usize) -> usize {
        assert!(!(self.chars_panic && self.panics.contains(&row)), "length of row {row}");
        self.captions[row].chars().count().saturating_add_signed(self.lie)
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        Ok(self.captions[row].clone())
    }

    fn read(&self, row: usize, size: usize, into: &mut [u8]) -> Result<Sample, BadSample> {
        assert_eq!(size, SIZE);
        self.reads.fetch_add(1, Ordering::Relaxed);
        if let Some(delay) = self.delay {
            std::thread::sleep(delay(row));
        }
        assert!(!self.panics.contains(&row), "the decoder fell over row {row}");
        if self.bad.contains(&row) {
            let place = format!("memory, row {row}");
            let source = "memory".into();
            return Err(BadSample {
                reason: "truncated",
                detail: "cut".into(),
                place,
                file: source,
                bytes: None,
            });
        }
        into.copy_from_slice(&pixels(row));
        Ok(Sample {
            caption: self.captions[row].clone(),
            original: (size as u32, size as u32),
            warnings: Warnings { animated: self.warned.contains(&row), ..Warnings::default() },
        })
    }

    fn describe(&self) -> String {
        "memory".into()
    }

    fn fingerprint(&self) -> u64 {
        7
    }
}

/// What a test may vary about a data set.
#[derive(Clone, Copy)]
pub struct Setup {
    pub mode: LossMode,
    pub padding: Padding,
    pub max: Option<usize>,
    pub unknown: UnknownPolicy,
    pub vocabulary: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: LossMode::Masked,
            padding: Padding::Longest,
            max: None,
            unknown: UnknownPolicy::Error,
            vocabulary: "abcdefghijklmnopqrstuvwxyz ",
        }
    }
}

pub fn dataset(source: Arc<Memory>, setup: Setup) -> Arc<Dataset> {
    let stats = ContentStats::scan(&*source);
    let lengths = Lengths::plan(setup.padding, setup.max, &stats).unwrap();
    let end = setup.mode == LossMode::Masked;
    let tokenizer = CharTokenizer::learn(setup.vocabulary.chars(), end, setup.unknown).unwrap();
    Arc::new(Dataset::new(source, Arc::new(tokenizer), SIZE, setup.mode, lengths).unwrap())
}

pub fn sampler(rows: usize, batch_per_rank: usize, rank: usize, world: usize, endless: bool) -> Sampler {
    let options = SamplerOptions { seed: 1337, shuffle: true, endless, batch_per_rank, rank, world };
    Sampler::new(Rows::all(rows), options).unwrap()
}

pub fn options(workers: usize, until_epoch: Option<u64>) -> LoaderOptions {
    LoaderOptions { workers, ahead: 3, until_epoch, window: 1 }
}

/// Every batch up to `until`, epochs joined.
pub fn all(d: &Arc<Dataset>, s: &Sampler, from: Position, workers: usize, until: u64) -> Vec<Loaded> {
    let mut loader = Loader::start(d.clone(), s.clone(), from, options(workers, Some(until))).unwrap();
    let mut batches = Vec::new();
    for _ in from.epoch..until {
        while let Some(loaded) = loader.next_batch() {
            batches.push(loaded.unwrap());
        }
    }
    assert!(loader.next_batch().is_none() && loader.next_batch().is_none());
    batches
}

/// The only batch of an epoch of a source that is read in order.
pub fn only_batch(source: Memory, setup: Setup, rows: usize) -> Batch {
    let s = Sampler::in_order(Rows::all(source.captions.len()), rows).unwrap();
    let mut batches = all(&dataset(Arc::new(source), setup), &s, Position::default(), 0, 1);
    assert_eq!(batches.len(), 1);
    batches.remove(0).batch
}
