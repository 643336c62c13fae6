//! Data: sources of picture-caption pairs, tokenisers, image decoding, sampling, batching, loading ahead.
//!
//! The way of a batch: [`source`] (rows) -> sampler (global order) -> decode workers (bytes -> u8 RGB,
//! caption -> ids) -> [`Batch`](batch::Batch) -> the training loop. The order of samples is a function of
//! (seed, epoch) alone: never of decoding, of the number of workers or of the number of ranks.
pub mod source;
