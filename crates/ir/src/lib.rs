//! The language of Ocelli: a training step is a *program*, and this crate says what a program is.
//!
//! A model is plain Rust that adds nodes to a [`Graph`]; passes turn graphs into graphs and at last into a
//! [`Plan`](plan::Plan); an [`Executor`](executor::Executor) runs plans. Nothing here names a device or a model.
pub mod dropout;
mod dtype;
pub mod executor;
mod graph;
pub mod op;
pub mod ops;
pub mod plan;
pub mod reference;
pub mod rng;
mod shape;
pub mod state;
pub mod tensor;

pub use dtype::DType;
pub use graph::{Graph, GraphError, Node, Value, ValueInfo};
pub use ops::Op;
pub use shape::{Shape, TensorType, View};
pub use state::{Init, Slot, SlotId, SlotKind, StateSpec};
