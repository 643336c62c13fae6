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
