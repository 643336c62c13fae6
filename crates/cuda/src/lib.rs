//! The CUDA executor: runs plans on an NVIDIA GPU of compute capability 8.0 or newer.
//!
//! A plan's launches are *lowered* to calls of kernels, compiled at first use by NVRTC for the GPU found and kept on disk,
//! and of cuBLASLt. A program is recorded as one CUDA graph and replayed; nothing is allocated, and the host waits for
//! nothing, while it runs. All libraries are opened when they are needed: the same binary runs without CUDA.
//!
//! Map: `ops` says what each op becomes; `elements` makes kernels from expressions; `plan` lowers a whole plan, and `late` makes
//! the sums that its launches leave behind; [`CudaProgram`] runs it, `overlap` says which launches start while others end,
//! `feed` hands it batches, out of a `store` if pictures stay on the device, `reads` brings metrics back; `executor/tune` chooses by measuring. `unsafe` is where libraries are
//! opened and called (`libraries`, `gpu`, `driver`, `nvrtc`, `blas`) and where launches are queued (`program`, `feed`, `executor/tune`).

mod addresses;
mod blas;
mod cache;
mod doctor;
mod driver;
mod elements;
mod executor;
mod feed;
mod gpu;
mod late;
mod libraries;
mod lower;
mod narrow;
mod nvrtc;
mod ops;
mod overlap;
mod plan;
mod program;
mod reads;
mod ready;
mod state;
mod store;
mod target;

pub use doctor::{Check, doctor};
pub use executor::{CudaError, CudaExecutor, CudaOptions};
pub use gpu::{GpuFault, GpuInfo};
pub use libraries::LibFault;
pub use lower::Machine;
pub use nvrtc::{NvrtcFault, compile};
pub use overlap::Overlap;
pub use program::CudaProgram;
pub use state::CudaState;
pub use target::CudaTarget;

/// The sources of all kernels of a plan, each once, as the compiler gets them. Needs no GPU.
///
/// # Errors
/// If a launch has no kernel.
pub fn kernel_sources(
    plan: &ocelli_ir::plan::Plan,
    machine: Machine,
) -> Result<Vec<String>, ocelli_ir::executor::ExecError> {
    let (steps, _) = plan::steps(plan, machine)?;
    let all = steps.iter().flat_map(plan::Step::sources).chain([narrow::SOURCE]);
    let sources: std::collections::BTreeSet<&str> = all.collect();
    Ok(sources.into_iter().map(|s| format!("{}\n{s}", executor::PRELUDE)).collect())
}
