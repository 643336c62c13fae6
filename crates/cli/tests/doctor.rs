//! `ocelli doctor` through the real binary.

mod support;

use serde_json::Value;
use support::{Bench, said};

/// What is said of the kernel cache in a home folder.
fn cache(b: &Bench, home: &str) -> Value {
    let mut command = b.command(&["doctor", "--json"]);
    let output = command.env("HOME", home).env_remove("XDG_CACHE_HOME").output().unwrap();
    let v: Value = serde_json::from_str(&said(output).done().out).unwrap();
    v["checks"].as_array().unwrap().iter().find(|c| c["what"] == "kernel cache").unwrap().clone()
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_cache_is_tried() {
    let b = Bench::new();
    let home = b.dir.path().to_str().unwrap();
    let good = cache(&b, home);
    assert_eq!(good["ok"], true, "{good}");
    assert_eq!(good["found"], b.path(".cache/ocelli/kernels").to_str().unwrap());
    assert_eq!(std::fs::read_dir(b.path(".cache/ocelli/kernels")).unwrap().count(), 0);
    // No folder can be made there, not even by root.
    let bad = cache(&b, "/proc");
    assert_eq!(bad["ok"], false, "{bad}");
    let why = bad["found"].as_str().unwrap();
    assert!(why.contains("/proc/.cache/ocelli/kernels: ") && why.contains("XDG_CACHE_HOME"), "{why}");
    std::fs::write(b.path("file"), "").unwrap();
    assert_eq!(cache(&b, b.path("file").to_str().unwrap())["ok"], false);
}

/// The binary where the driver is a file of this text, or is not there at all, and no other library of CUDA is found.
#[cfg(target_os = "linux")]
fn without_cuda(b: &Bench, driver: Option<&str>, args: &[&str]) -> support::Said {
    let libraries = b.path("libraries");
    std::fs::create_dir_all(&libraries).unwrap();
    if let Some(text) = driver {
        std::fs::write(libraries.join("libcuda.so.1"), text).unwrap();
    }
    let mut command = b.command(args);
    command.env("LD_LIBRARY_PATH", &libraries).env("PATH", "");
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"] {
        command.env_remove(variable);
    }
    said(command.output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_driver_that_is_no_library_is_told_by_its_name() {
    let b = Bench::new();
    let text =
        Some("this is no library, and longer than the head of one, which the loader reads before all else\n");
    let doctor = without_cuda(&b, text, &["doctor"]).done();
    doctor.mentions(&[
        "missing  driver",
        "libcuda.so.1 cannot be used: ",
        "install NVIDIA's driver",
        "on: cpu",
    ]);
    let train = support::tiny(&["trainer_config.max_iters=1", "trainer_config.device=cuda"]);
    without_cuda(&b, text, &train).refused(&[
        "trainer_config.device=cuda",
        "libcuda.so.1 cannot be used",
        "install NVIDIA's driver",
    ]);
    let train = support::tiny(&["trainer_config.max_iters=1", "trainer_config.device=auto"]);
    let auto = without_cuda(&b, text, &train).done();
    let all = format!("{}{}", auto.out, auto.err);
    assert_eq!(all.matches("libcuda.so.1 cannot be used").count(), 1, "{all}");
}

/// As on most machines: said once, and no warning.
#[cfg(target_os = "linux")]
#[test]
fn without_a_driver_the_cpu_trains() {
    let b = Bench::new();
    let train = support::tiny(&["trainer_config.max_iters=1", "trainer_config.device=auto"]);
    let auto = without_cuda(&b, None, &train).done();
    // A machine with a GPU finds its driver in spite of all.
    if auto.out.contains("device: CPU") {
        assert_eq!(auto.out.matches("device: CPU (there is no NVIDIA driver)").count(), 1, "{}", auto.out);
        assert_eq!(auto.err, "");
        let device = support::tiny(&["trainer_config.device=cuda"]);
        without_cuda(&b, None, &device).refused(&["libcuda.so.1 was not found", "install NVIDIA's driver"]);
        let doctor = without_cuda(&b, None, &["doctor"]).done();
        let files =
            ["libnvrtc.so.13 or libnvrtc.so.12 was not found", "libcublasLt.so.13 or libcublasLt.so.12"];
        doctor.mentions(&files).mentions(&["pip install nvidia-cuda-nvrtc", "pip install nvidia-cublas"]);
    }
}
