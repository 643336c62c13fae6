//! Batches of drawn numbers, and steps over them against the clock.
//!
//! Invariant: they are functions of their sizes alone, so that every measurement trains on the same ones, in one order.

use anyhow::Context;
use ocelli_data::batch::Batch;
use ocelli_ir::op::{Fill, Gen};
use ocelli_ir::{DType, TensorType};
use ocelli_train::engine::Engine;
use ocelli_train::program::Size;
use std::sync::Arc;
use std::time::Instant;

/// Batches that take turns, so that no step finds its data in a cache.
const BATCHES: usize = 8;
/// Steps before the clock runs: the first ones compile and touch memory.
pub const WARM_UP: usize = 4;

/// The batches.
pub fn all(size: Size, side: usize, vocab: usize) -> Arc<[Batch]> {
    (0..BATCHES).map(|i| drawn(size, side, vocab, i)).collect()
}

/// The batches in turn, as one engine takes them.
#[derive(Debug)]
pub struct Turns {
    batches: Vec<Batch>,
    /// Batches of a step.
    per_step: usize,
    /// Batches taken.
    taken: usize,
}

impl Turns {
    /// From the first batch on, with pictures where `engine` takes them fastest, as those of a run are.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new(batches: &[Batch], per_step: usize, engine: &Engine) -> anyhow::Result<Self> {
        let memory = engine.memory();
        let there = |batch: &Batch| {
            let mut images = memory(batch.images.len()).context("no memory for batches")?;
            images.get_mut().into_iter().for_each(|to| to.copy_from_slice(&batch.images));
            Ok(Batch { images, ..batch.clone() })
        };
        Ok(Self { batches: batches.iter().map(there).collect::<anyhow::Result<_>>()?, per_step, taken: 0 })
    }

    /// Takes `n` steps; milliseconds a step.
    ///
    /// # Errors
    /// If the device fails.
    pub fn steps(&mut self, engine: &mut Engine, n: usize) -> anyhow::Result<f64> {
        let begin = Instant::now();
        for _ in 0..n {
            for part in 1..=self.per_step {
                let batch = self.batches.get(self.taken % BATCHES).context("there are no batches")?;
                self.taken += 1;
                engine.train(batch, part == self.per_step)?;
            }
        }
        // A device works behind the host's back: reading the counter waits for it.
        engine.attempts()?;
        Ok(begin.elapsed().as_secs_f64() * 1e3 / n as f64)
    }
}

/// Batch number `i`, its captions 30 to 100 tokens long where there is room, all rows full.
fn drawn(size: Size, side: usize, vocab: usize, i: usize) -> Batch {
    let Size { batch: rows, text } = size;
    let mut draw = Gen::new(i as u64);
    let mut below = |n: usize, most: u32| {
        draw.tensor::<f32>(&TensorType::new(DType::U32, [n]), Fill::Below(most)).as_u32().to_vec()
    };
    let images = below(rows * side * side * 3, 256).into_iter().map(|x| x as u8).collect();
    let tokens = below(rows * text, vocab as u32);
    let targets = below(rows * (text + 1), vocab as u32);
    let lengths = below(rows, 71);
    let counts = |row: usize, at: usize| at <= (30 + lengths[row] as usize).min(text);
    let weights: Vec<f32> = (0..rows)
        .flat_map(|r| (0..=text).map(move |t| (r, t)))
        .map(|(r, t)| f32::from(u8::from(counts(r, t))))
        .collect();
    Batch {
        rows,
        text_len: text,
        size: side,
        images,
        tokens,
        targets,
        tokens_weight: weights.iter().sum(),
        weights,
        sample_index: (0..rows).map(|r| (i * rows + r) as u32).collect(),
        real_rows: rows,
        ..Batch::default()
    }
}
