//! placeholder
pub mod rng;
