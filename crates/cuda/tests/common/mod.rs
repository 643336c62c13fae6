//! The executor of the machine's first GPU, if it has one.

#![allow(dead_code)] // each test binary uses its part

pub mod bodies;
pub mod shapes;

use ocelli_cuda::{CudaExecutor, CudaOptions};

/// An executor, or none with a line that says why.
///
/// # Panics
/// If `OCELLI_NEEDS_GPU` is set and there is none: then nothing may be skipped.
pub fn executor() -> Option<CudaExecutor> {
    executor_with(CudaOptions::default())
}

/// As [`executor`], with options.
///
/// # Panics
/// As [`executor`].
pub fn executor_with(options: CudaOptions) -> Option<CudaExecutor> {
    match CudaExecutor::new(options) {
        Ok(executor) => Some(executor),
        Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
            println!("skipped: no CUDA device ({e})");
            None
        }
        Err(e) => panic!("no CUDA device: {e}"),
    }
}
