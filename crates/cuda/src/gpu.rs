//! What is known of a GPU and of the software that drives it.

use crate::driver::{Context, DriverFault};
use crate::libraries::{Lib, LibFault, driver_knows};
use cudarc::driver::{result, sys};
use ocelli_ir::memory::Room;
use std::sync::Arc;
use thiserror::Error;

/// Why there is no GPU to work with.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GpuFault {
    /// A library is missing, or of no use.
    #[error(transparent)]
    Library(#[from] LibFault),
    /// The driver is there and does not work, or finds no device.
    #[error("{message}; {advice}")]
    Driver {
        /// What it said.
        message: String,
        /// What to do.
        advice: String,
    },
    /// The GPU is too old.
    #[error(
        "{name} has compute capability {major}.{minor}; kernels need 8.0 (A100, RTX 30) or newer: take another GPU \
         (CUDA_VISIBLE_DEVICES), or the CPU (trainer_config.device=cpu)"
    )]
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

    /// True if a launch can start while the one before it ends, also in a graph: compute capability 9.0, CUDA 12.3.
    pub(crate) fn overlaps(&self) -> bool {
        let (major, minor) = self.driver.split_once('.').unwrap_or_default();
        let driver: (u32, u32) = (major.parse().unwrap_or(0), minor.parse().unwrap_or(0));
        self.capability >= (9, 0) && driver >= (12, 3)
    }
}

/// Starts the driver; how many devices it shows.
///
/// # Errors
/// If it is not there, or does not start, or shows none.
pub fn devices() -> Result<i32, GpuFault> {
    Lib::Driver.open()?;
    let fault = |what: &str, e: cudarc::driver::DriverError| {
        let said = e
            .error_string()
            .map_or_else(|_| format!("error {}", e.0 as u32), |s| s.to_string_lossy().into_owned());
        let advice =
            "see `nvidia-smi`: is a GPU there, and is the driver loaded and not older than its libraries?";
        GpuFault::Driver { message: format!("NVIDIA's driver: {what}: {said}"), advice: advice.into() }
    };
    result::init().map_err(|e| fault("starting", e))?;
    let version = driver_version();
    if let Some(fault) = version.and_then(too_old) {
        return Err(fault);
    }
    driver_knows(version.map_or(0, |v| v.unsigned_abs() / 1000));
    let count = result::device::get_count().map_err(|e| fault("counting devices", e))?;
    if count == 0 {
        let advice = "see `nvidia-smi`, and whether CUDA_VISIBLE_DEVICES hides it".into();
        return Err(GpuFault::Driver { message: "NVIDIA's driver shows no GPU".into(), advice });
    }
    Ok(count)
}

/// The CUDA version that the driver knows, 1000 times the major one plus 10 times the minor one.
fn driver_version() -> Option<i32> {
    let mut version = 0;
    // SAFETY: the driver is there; it writes one number.
    let known = unsafe { sys::cuDriverGetVersion(&mut version) } == sys::CUresult::CUDA_SUCCESS;
    known.then_some(version)
}

/// `13.0` of 13000.
fn words(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The oldest CUDA that a driver must know.
const OLDEST: i32 = 12_000;

/// The fault of a driver that is too old.
fn too_old(version: i32) -> Option<GpuFault> {
    (version < OLDEST).then(|| GpuFault::Driver {
        message: format!(
            "NVIDIA's driver knows CUDA {} only, and {} is needed",
            words(version),
            words(OLDEST)
        ),
        advice: "install a newer driver (525 or newer)".into(),
    })
}

/// Why a library of a CUDA version, such as 13.0, does not go with the driver, if it does not.
pub fn newer_than_driver(library: &str, version: &str) -> Option<String> {
    mismatch(library, version, driver_version()?)
}

fn mismatch(library: &str, version: &str, driver: i32) -> Option<String> {
    let major: i32 = version.split('.').next()?.parse().ok()?;
    (major > driver / 1000).then(|| {
        format!(
            "{library} is of CUDA {version}, and NVIDIA's driver knows CUDA {} only: install a newer driver, or the \
             libraries of CUDA {} (`pip install nvidia-cuda-nvrtc-cu{1} nvidia-cublas-cu{1}`)",
            words(driver),
            driver / 1000
        )
    })
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
        driver: driver_version().map_or("unknown".into(), words),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_driver_is_told_with_what_to_install() {
        assert_eq!(too_old(12_000), None);
        let said = too_old(11_080).unwrap().to_string();
        assert_eq!(
            said,
            "NVIDIA's driver knows CUDA 11.8 only, and 12.0 is needed; install a newer driver (525 or newer)"
        );
    }

    #[test]
    fn a_library_newer_than_the_driver_is_told() {
        assert_eq!(mismatch("libnvrtc", "12.8", 12_040), None);
        assert_eq!(mismatch("libnvrtc", "12.9", 13_000), None);
        let said = mismatch("libnvrtc", "13.0", 12_040).unwrap();
        for part in
            ["libnvrtc is of CUDA 13.0", "knows CUDA 12.4 only", "libraries of CUDA 12 ", "nvrtc-cu12"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_gpu_that_is_too_old_is_told() {
        let said = GpuFault::Unsupported { name: "Tesla T4".into(), major: 7, minor: 5 }.to_string();
        assert!(said.starts_with("Tesla T4 has compute capability 7.5; kernels need 8.0"), "{said}");
        assert!(said.contains("trainer_config.device=cpu"), "{said}");
    }
}
