//! What there is on this machine to run on a GPU with, and what is missing.

use crate::blas;
use crate::cache::{self, KernelCache};
use crate::gpu::{self, GpuInfo};
use crate::libraries::Lib;
use crate::nvrtc;

/// One thing that is needed: found with a word about it, or missing with what to do.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is needed.
    pub what: String,
    /// What was found, or what is wrong and what to do.
    pub found: Result<String, String>,
}

/// Looks at libraries, driver, GPUs and the folder of compiled kernels. Nothing is changed, but that the folder is made, and
/// no memory of a GPU is taken.
pub fn doctor() -> Vec<Check> {
    let mut all = Vec::new();
    let mut check = |what: String, found: Result<String, String>| all.push(Check { what, found });
    // First, for it decides which of the other libraries are taken.
    let count = gpu::devices().map_err(|e| e.to_string());
    let opened = |lib: Lib| lib.open().map_err(|e| e.to_string());
    let fits = |lib: Lib, version: String, found: String| match &count {
        Ok(_) => gpu::newer_than_driver(lib.file(), &version).map_or(Ok(found), Err),
        Err(_) => Ok(found),
    };
    check("driver".into(), opened(Lib::Driver).and_then(|at| Ok(format!("{at}, GPUs: {}", count.clone()?))));
    let compiler = nvrtc::version().map_err(|e| e.to_string()).and_then(|v| {
        let found = format!("{}, NVRTC {v}", opened(Lib::Nvrtc)?);
        fits(Lib::Nvrtc, v, found)
    });
    check("kernel compiler".into(), compiler);
    let products = opened(Lib::CublasLt).and_then(|at| {
        let version = blas::version();
        fits(Lib::CublasLt, version.clone(), format!("{at}, cuBLASLt {version}"))
    });
    check("matrix products".into(), products);
    for ordinal in 0..count.clone().unwrap_or(0) {
        check(
            format!("GPU {ordinal}"),
            gpu::open(ordinal).map(|(_, info)| about(&info)).map_err(|e| e.to_string()),
        );
    }
    check("kernel cache".into(), folder("kernels", "kernels are compiled"));
    check("tuning cache".into(), folder("tuning", "kernels are measured (trainer_config.autotune)"));
    all
}

fn folder(name: &str, work: &str) -> Result<String, String> {
    let nowhere = || format!("no folder: HOME and XDG_CACHE_HOME are not set, so {work} at every start");
    let folder = cache::folder(name).ok_or_else(nowhere)?;
    match KernelCache::try_folder(&folder) {
        Ok(()) => Ok(folder.display().to_string()),
        Err(e) => Err(format!(
            "{}: {e}, so {work} at every start; set XDG_CACHE_HOME to a folder that can be written",
            folder.display()
        )),
    }
}

fn about(info: &GpuInfo) -> String {
    let gb = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    format!(
        "{}, {} ({} multiprocessors), {:.1} of {:.1} GiB free, driver for CUDA {}",
        info.name,
        info.arch(),
        info.processors,
        gb(info.free),
        gb(info.memory),
        info.driver
    )
}
