//! What there is on this machine to run on a GPU with, and what is missing.

use crate::cache::KernelCache;
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
    let driver = Lib::Driver.open().map(str::to_string);
    let count = gpu::devices().map_err(|e| e.to_string());
    check("driver".into(), driver.and_then(|path| count.clone().map(|n| format!("{path}, GPUs: {n}"))));
    let version = nvrtc::version().map_err(|e| e.to_string());
    check(
        "kernel compiler".into(),
        version.and_then(|v| Lib::Nvrtc.open().map(|path| format!("{path}, NVRTC {v}"))),
    );
    check("matrix products".into(), Lib::CublasLt.open().map(str::to_string));
    for ordinal in 0..count.unwrap_or(0) {
        check(
            format!("GPU {ordinal}"),
            gpu::open(ordinal).map(|(_, info)| about(&info)).map_err(|e| e.to_string()),
        );
    }
    check("kernel cache".into(), cache());
    all
}

fn cache() -> Result<String, String> {
    let nowhere = "no folder: HOME and XDG_CACHE_HOME are not set, so kernels are compiled at every start";
    let folder = KernelCache::default_folder().ok_or(nowhere)?;
    match KernelCache::try_folder(&folder) {
        Ok(()) => Ok(folder.display().to_string()),
        Err(e) => Err(format!(
            "{}: {e}, so kernels are compiled at every start; set XDG_CACHE_HOME to a folder that can be written",
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
