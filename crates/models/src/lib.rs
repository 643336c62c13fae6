//! Models, written once, forward, as plain Rust against a graph builder. Each folder is a model's diagram;
//! [`nn`] holds the layers that models share.
pub mod nn;
pub mod seemore;
