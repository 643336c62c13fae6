//! The device that a command runs on.

use crate::output::warn;
use anyhow::Context;
use ocelli_config::{AmpDtype, Config, Device, Resolved, Switch};
use ocelli_cpu::CpuExecutor;
use ocelli_cuda::{CudaError, CudaExecutor, CudaOptions};
use ocelli_ir::DType;
use ocelli_ir::executor::{Executor, Target};
use std::path::Path;
use std::sync::Arc;

/// A configuration that can be trained, and the device that it asks for. What it leaves to the device is settled; `tell`
/// gets what the user should know.
///
/// # Errors
/// If it asks for what is not there yet, or the device is not there or does not start: what to install.
pub fn of(resolved: &Resolved, tell: &mut dyn FnMut(&str)) -> anyhow::Result<(Config, Arc<dyn Executor>)> {
    let mut c = resolved.for_training()?.clone();
    let executor = start(&mut c, Some(&resolved.cpu_notices), tell)?;
    Ok((c, executor))
}

/// The device that a configuration asks for, which settles what is left to it. `notices` are for the CPU; none where a
/// trained model is used: then it is not said either that there is no GPU.
///
/// # Errors
/// If the device is not there or does not start: what to install.
pub fn start(
    c: &mut Config,
    notices: Option<&[String]>,
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<Arc<dyn Executor>> {
    let t = &c.trainer;
    let options = CudaOptions {
        tf32: t.tf32,
        cuda_graph: t.cuda_graph,
        autotune: t.autotune,
        prefetch: t.prefetch,
        pinned_memory: c.data.pinned_memory,
        ..CudaOptions::default()
    };
    let gpu = match t.device {
        Device::Cpu => None,
        Device::Cuda => Some(CudaExecutor::new(options).context("trainer_config.device=cuda")?),
        Device::Auto => match notices {
            Some(_) => gpu_if_any(options, tell),
            None => gpu_if_any(options, &mut |_| ()),
        },
    };
    let executor: Arc<dyn Executor> = match gpu {
        Some(gpu) => Arc::new(gpu),
        None => {
            let notices = notices.unwrap_or_default();
            notices.iter().for_each(|line| tell(&format!("note: {line}")));
            Arc::new(CpuExecutor::new(t.threads).context("the CPU executor cannot start")?)
        }
    };
    settle(c, executor.target());
    Ok(executor)
}

/// Settles what a configuration leaves to the device.
pub fn settle(c: &mut Config, target: &dyn Target) {
    let (t, half) = (&mut c.trainer, target.half());
    if t.use_amp == Switch::Auto {
        // 16 bits are worth it where the device has a use for them.
        t.use_amp = half.is_some().into();
    }
    if t.use_amp == Switch::On && t.amp_dtype == AmpDtype::Auto {
        match half {
            Some(DType::F16) => t.amp_dtype = AmpDtype::Fp16,
            Some(_) => t.amp_dtype = AmpDtype::Bf16,
            None => {}
        }
    }
}

/// The GPU, if there is one that works. Why there is none is for `tell`; where a GPU must be there, it is a warning.
fn gpu_if_any(options: CudaOptions, tell: &mut dyn FnMut(&str)) -> Option<CudaExecutor> {
    let told = |e: &CudaError| {
        let device = ["/dev/nvidia0", "/dev/dxg"].iter().any(|path| Path::new(path).exists());
        match (device, e.is_absent()) {
            (true, _) => warn(&format!("note: the CPU is used, not the GPU: {e} (see `ocelli doctor`)")),
            // Most machines have no GPU, and nothing is amiss there.
            (false, true) => tell("device: CPU (there is no NVIDIA driver)"),
            (false, false) => tell(&format!("device: CPU ({e})")),
        }
    };
    CudaExecutor::new(options).inspect_err(told).ok()
}
