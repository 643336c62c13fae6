//! `ocelli doctor`: what this machine has to train on.

use crate::output::{arrived, say, say_json};
use serde_json::json;

/// Shows processors, libraries and GPUs, what is missing and what to install. A missing GPU is no failure.
pub fn doctor(as_json: bool) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let checks = ocelli_cuda::doctor();
    let ready = checks.iter().all(|c| c.found.is_ok() || c.what.ends_with(" cache"));
    let device = if ready { "cuda" } else { "cpu" };
    if as_json {
        let one = |c: &ocelli_cuda::Check| json!({"what": c.what, "ok": c.found.is_ok(), "found": c.found.as_ref().unwrap_or_else(|e| e)});
        say_json(
            &json!({"cores": cores, "device": device, "checks": checks.iter().map(one).collect::<Vec<_>>()}),
        );
        return arrived();
    }
    say(&format!("ok       {:<16} {cores} threads", "CPU"));
    for check in &checks {
        match &check.found {
            Ok(found) => say(&format!("ok       {:<16} {found}", check.what)),
            Err(why) => say(&format!("missing  {:<16} {why}", check.what)),
        }
    }
    say(&format!("trainer_config.device=auto trains on: {device}"));
    arrived()
}
