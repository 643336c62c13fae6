//! Passes: graph in, graph out, and at the end a plan. No pass names a device or a model; what a device can do
//! is asked of its [`Target`](ocelli_ir::executor::Target).
pub mod attention;
pub mod autodiff;
pub mod fuse;
pub mod memory;
pub mod pipeline;
pub mod precision;
pub mod recompute;
pub mod rounded;
pub mod row_slice;
pub mod schedule;
pub mod simplify;
pub mod verify;

pub use pipeline::{CompileError, Options, PassCx, Stage, compile};
pub use precision::Precision;
