//! Data: sources of picture-caption pairs, tokenisers, image decoding, sampling, batching, loading ahead.
//!
//! The way of a batch: [`source`] (rows) -> [`sampler`] (global order) -> [`loader`] workers (bytes -> u8 RGB,
//! caption -> ids) -> [`Batch`](batch::Batch) -> the training loop. The order of samples is a function of
//! (seed, epoch) alone: never of decoding, of the number of workers or of the number of ranks.
//!
//! Before that, [`scan`] looks at all captions: from it come a learnt vocabulary ([`tokenizer`]), the padded
//! lengths ([`batch::Lengths`]) and what a person is told before the first step; [`split`](mod@split) divides the rows.
//! [`cache`] keeps decoded pictures in a file, for all epochs and runs after the first.
//! [`hub`] brings data sets of the Hugging Face hub to this machine, and is the only part that uses the network.
pub mod batch;
pub mod cache;
pub mod hub;
pub mod image;
pub mod loader;
mod memory;
pub mod sampler;
pub mod scan;
mod scratch;
pub mod source;
pub mod split;
pub mod stages;
pub mod text;
pub mod tokenizer;
