//! What is known of a GPU and of the software that drives it.

use crate::driver::{Context, DriverFault};
use crate::libraries::Lib;
use cudarc::driver::{result, sys};
use ocelli_ir::memory::Room;
use std::sync::Arc;
use thiserror::Error;

/// Why there is no GPU to work with.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GpuFault {
    /// A library is missing.
    #[error("{0}")]
    Missing(String),
    /// The driver is there and does not work, or finds no device.
    #[error("{message}; {advice}")]
    Driver {
        /// What it said.
        message: String,
        /// What to do.
        advice: String,
    },
    /// The GPU is too old.
    #[error("{name} has compute capability {major}.{minor}; kernels need 8.0 (A100, RTX 30) or newer")]
    Unsupported {
        /// The device.
        name: String,
        /// Its capability.
        major: i32,
        /// Its capability.
        minor: i32,
    },
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Number among those that the driver shows.
    pub ordinal: i32,
    /// `NVIDIA H200`.
    pub name: String,
    /// Compute capability: major, minor.
    pub capability: (i32, i32),
    /// Multiprocessors.
    pub processors: usize,
    /// Bytes of memory in all.
    pub memory: usize,
    /// Bytes of memory free.
    pub free: usize,
    /// Most shared memory of a block.
    pub shared: usize,
    /// Newest CUDA that the driver knows, `13.0`.
    pub driver: String,
}

impl GpuInfo {
    /// The architecture that kernels are compiled for: `sm_90a`.
    pub fn arch(&self) -> String {
        let (major, minor) = self.capability;
        // The 9.0 variant with the instructions of this very generation.
        let suffix = if (major, minor) == (9, 0) { "a" } else { "" };
        format!("sm_{major}{minor}{suffix}")
    }
}

/// Starts the driver; how many devices it shows.
///
/// # Errors
/// If it is not there, or does not start, or shows none.
pub fn devices() -> Result<i32, GpuFault> {
    Lib::Driver.open().map_err(GpuFault::Missing)?;
    let fault = |what: &str, e: cudarc::driver::DriverError| {
        let said = e
            .error_string()
            .map_or_else(|_| format!("error {}", e.0 as u32), |s| s.to_string_lossy().into_owned());
        let advice =
            "see `nvidia-smi`: is a GPU there, and is the driver loaded and not older than its libraries?";
        GpuFault::Driver { message: format!("NVIDIA's driver: {what}: {said}"), advice: advice.into() }
    };
    result::init().map_err(|e| fault("starting", e))?;
    let count = result::device::get_count().map_err(|e| fault("counting devices", e))?;
    if count == 0 {
        let advice = "see `nvidia-smi`, and whether CUDA_VISIBLE_DEVICES hides it".into();
        return Err(GpuFault::Driver { message: "NVIDIA's driver shows no GPU".into(), advice });
    }
    Ok(count)
}

/// The context of a device, and what is known of it.
///
/// # Errors
/// If there is none, or it is too old for the kernels.
pub fn open(ordinal: i32) -> Result<(Arc<Context>, GpuInfo), GpuFault> {
    let count = devices()?;
    let failed = |e: DriverFault| GpuFault::Driver {
        message: format!("GPU {ordinal}: {e}"),
        advice: format!("there are {count}; see `nvidia-smi`"),
    };
    let context = Context::new(ordinal).map_err(failed)?;
    let info = describe(&context, ordinal).map_err(failed)?;
    let (major, minor) = info.capability;
    if major < 8 {
        return Err(GpuFault::Unsupported { name: info.name, major, minor });
    }
    Ok((context, info))
}

fn describe(context: &Context, ordinal: i32) -> Result<GpuInfo, DriverFault> {
    use sys::CUdevice_attribute as Of;
    let of = |a| context.attribute(a);
    let Room { free, total: memory } = context.room()?;
    let mut version = 0;
    // SAFETY: the driver was started; it writes one number.
    let known = unsafe { sys::cuDriverGetVersion(&mut version) } == sys::CUresult::CUDA_SUCCESS;
    Ok(GpuInfo {
        ordinal,
        name: context.name()?,
        capability: (
            of(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            of(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        processors: of(Of::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1) as usize,
        memory,
        free,
        shared: of(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?.max(0) as usize,
        driver: if known { format!("{}.{}", version / 1000, version % 1000 / 10) } else { "unknown".into() },
    })
}
