//! What every crate's tests share: the tolerance table, finite differences, the golden reader, a stand-in for the hub.
pub mod case;
pub mod differences;
pub mod golden;
pub mod host;
pub mod hub;
pub mod tensors;
pub mod tolerance;
