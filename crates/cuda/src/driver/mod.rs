//! The driver's API, wrapped: everything here owns what it names and gives it back when dropped.
//!
//! All `unsafe` of this crate but launches stands in this folder, in `nvrtc.rs` and in `blas.rs`. What holds: a [`Context`] is alive as long
//! as anything made in it; every call makes its context current first, so threads do not matter; device addresses are
//! numbers, and only [`Stream`]'s methods make the device follow them.

mod calls;
mod context;
mod graph;
mod memory;
mod module;

pub use context::{Context, Event, Stream};
pub use graph::Graph;
pub use memory::{DeviceBuffer, HostBuffer, PinnedBuffer};
pub use module::{Function, Module};

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use ocelli_ir::memory::Room;
use std::fmt;
use std::sync::{Arc, Mutex};

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

/// The program that was queued last: the only one that an error can be of that shows later.
static LAST: Mutex<Option<Arc<str>>> = Mutex::new(None);

/// Says which program was queued last.
pub fn queued(program: &Arc<str>) {
    let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if last.as_ref().is_none_or(|l| !Arc::ptr_eq(l, program)) {
        *last = Some(program.clone());
    }
}

/// The environment's variable that has every launch waited for.
const SYNCHRONOUS: &str = "OCELLI_CUDA_SYNC";

/// True if the environment asks for every launch to be waited for.
pub fn synchronous() -> bool {
    std::env::var_os(SYNCHRONOUS).is_some_and(|v| !v.is_empty() && v != "0")
}

/// What to add to an error of a kernel, which shows at whatever call comes next: where it may be from.
fn later(e: CUresult, program: Option<&str>, synchronous: bool) -> String {
    use CUresult as E;
    let of_a_kernel = matches!(
        e,
        E::CUDA_ERROR_ECC_UNCORRECTABLE
            | E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_UNKNOWN
    );
    match program {
        Some(program) if of_a_kernel && !synchronous => format!(
            "; a launch that was queued before failed, the last ones are of program '{program}': with the environment's \
             {SYNCHRONOUS}=1 every launch is waited for, and the one that fails is named"
        ),
        _ => String::new(),
    }
}

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
            let none = e.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            let out_of_memory = none.then(|| {
                let (free, total) = cudarc::driver::result::mem_get_info().unwrap_or_default();
                Room { free, total }
            });
            let last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let message = format!("{message}{}", later(e.0, last.as_deref(), synchronous()));
            DriverFault { what: what.to_string(), message, out_of_memory }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CUresult, later};

    #[test]
    fn an_error_that_shows_later_names_its_program_and_how_to_find_the_launch() {
        let said = later(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, Some("train[B=4,T=8]"), false);
        assert!(said.contains("program 'train[B=4,T=8]'") && said.contains("OCELLI_CUDA_SYNC=1"), "{said}");
        // The launch is named already; nothing was queued; it is an error of this very call.
        assert_eq!(later(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, Some("train"), true), "");
        assert_eq!(later(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, None, false), "");
        assert_eq!(later(CUresult::CUDA_ERROR_INVALID_VALUE, Some("train"), false), "");
    }
}
