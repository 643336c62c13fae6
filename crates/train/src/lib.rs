//! Training: programs over one state, and what a run keeps on disk.
pub mod program;
pub mod run_dir;
pub mod snapshot;
