//! Training: programs over one state, the loop that runs them, and what a run keeps on disk.
pub mod caption;
mod changes;
pub mod checkpoint;
pub mod engine;
mod error;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod groups;
pub mod keep;
pub mod look;
pub mod memory;
pub mod prepare;
pub mod program;
pub mod report;
pub mod run;
pub mod run_dir;
pub mod settings;
pub mod snapshot;
pub mod sources;
pub mod trained;

pub use error::TrainError;
