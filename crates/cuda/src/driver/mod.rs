//! The driver's API, wrapped: everything here owns what it names and gives it back when dropped.
//!
//! All `unsafe` of this crate stands in this folder, in `nvrtc.rs` and in `blas.rs`. What holds: a [`Context`] is alive as long
//! as anything made in it; every call makes its context current first, so threads do not matter; device addresses are
//! numbers, and only [`Stream`]'s methods make the device follow them.

mod context;
mod graph;
mod memory;
mod module;

pub use context::{Context, Event, Stream};
pub use graph::Graph;
pub use memory::{DeviceBuffer, PinnedBuffer};
pub use module::{Function, Module};

use cudarc::driver::DriverError;
use ocelli_ir::memory::Room;
use std::fmt;

/// What the driver said to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFault {
    /// What was asked of it.
    pub what: String,
    /// Its answer.
    pub message: String,
    /// The answer was that there is no memory: what there is.
    pub out_of_memory: Option<Room>,
}

impl fmt::Display for DriverFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.message)
    }
}

/// The result of a call of the driver.
pub type Driven<T> = Result<T, DriverFault>;

/// Says what a call was for.
trait Asked<T> {
    fn asked(self, what: impl fmt::Display) -> Driven<T>;
}

impl<T> Asked<T> for Result<T, DriverError> {
    fn asked(self, what: impl fmt::Display) -> Driven<T> {
        self.map_err(|e| {
            let text =
                |c: Result<&std::ffi::CStr, DriverError>| c.map(|c| c.to_string_lossy().into_owned()).ok();
            let (name, words) = (text(e.error_name()), text(e.error_string()));
            let message = match (name, words) {
                (Some(name), Some(words)) => format!("{words} ({name})"),
                _ => format!("error {}", e.0 as u32),
            };
            let none = e.0 == cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            let out_of_memory = none.then(|| {
                let (free, total) = cudarc::driver::result::mem_get_info().unwrap_or_default();
                Room { free, total }
            });
            DriverFault { what: what.to_string(), message, out_of_memory }
        })
    }
}
