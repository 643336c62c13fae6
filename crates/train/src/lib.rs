//! Training: what a run keeps on disk. See [`snapshot`] and [`run_dir`].
pub mod run_dir;
pub mod snapshot;
