//! What every crate's tests share: the tolerance table, finite differences, the golden reader.
pub mod differences;
pub mod golden;
pub mod host;
pub mod tolerance;
