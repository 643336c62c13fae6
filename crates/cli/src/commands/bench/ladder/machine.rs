//! The machine that a ladder is measured on, in words.

use super::report::Machine;
use std::fs::read_to_string;

/// The machine that `device` (`cuda` or `cpu`) is of, as its system tells.
pub fn machine(device: &str) -> Machine {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = read_to_string("/proc/cpuinfo").ok().as_deref().and_then(processor);
    let cpu = cpu.unwrap_or_else(|| std::env::consts::ARCH.into());
    let gpu = (device == "cuda").then(gpu).flatten();
    let module = gpu.as_ref().and_then(|_| read_to_string("/proc/driver/nvidia/version").ok());
    let driver = module.as_deref().and_then(version);
    let (name, about) = match gpu {
        Some(about) => (about.split(',').next().unwrap_or(&about).to_string(), format!("{about}; {cpu}")),
        None => (cpu, String::new()),
    };
    Machine { device: device.into(), name, driver, about, cores }
}

/// The first GPU: its name, and more behind a comma.
fn gpu() -> Option<String> {
    let checks = ocelli_cuda::doctor();
    checks.into_iter().find(|c| c.what == "GPU 0")?.found.ok()
}

/// The first processor's name.
fn processor(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find_map(|l| l.strip_prefix("model name"))?;
    Some(line.trim_start_matches([' ', '\t', ':']).trim().to_string())
}

/// The version in what NVIDIA's kernel module tells of itself.
fn version(module: &str) -> Option<String> {
    let mut words = module.lines().next()?.split_whitespace();
    let number = |w: &&str| w.contains('.') && w.chars().all(|c| c.is_ascii_digit() || c == '.');
    words.find(number).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_stand() {
        let module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\nGCC version: 12";
        assert_eq!(version(module).as_deref(), Some("580.159.03"));
        assert_eq!(processor("vendor_id\t: A\nmodel name\t: AMD EPYC 9\n").as_deref(), Some("AMD EPYC 9"));
        assert_eq!((version(""), processor("Hardware: arm")), (None, None));
    }
}
