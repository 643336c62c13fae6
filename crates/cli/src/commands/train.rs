//! `ocelli train`: from the command line to a run.

use crate::args::Train;
use crate::console::Console;
use crate::output::{arrived, say, warn, warn_after_ctrl_c};
use anyhow::Context;
use ocelli_config::{self as config, Resolved};
use ocelli_cpu::CpuExecutor;
use ocelli_train::run::{self, Request};
use ocelli_train::{checkpoint, snapshot};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Trains once, or once for each combination of a sweep.
pub fn train(args: &Train) -> anyhow::Result<()> {
    let jobs = if args.multirun { config::sweep(&args.overrides)? } else { vec![args.overrides.clone()] };
    let interrupted = on_interrupt()?;
    for (i, overrides) in jobs.iter().enumerate() {
        if jobs.len() > 1 {
            say(&format!("run {} of {}: {}", i + 1, jobs.len(), overrides.join(" ")));
        }
        one(args, overrides, &interrupted)?;
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

fn one(args: &Train, overrides: &[String], interrupted: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let (resolved, name) = resolve(args, overrides)?;
    if args.print_config {
        say(resolved.to_yaml_with_sources().trim_end());
        return arrived();
    }
    resolved.notices.iter().for_each(|line| say(&format!("note: {line}")));
    let config = resolved.for_training()?.clone();
    let executor = CpuExecutor::new(config.trainer.threads).context("the CPU executor cannot start")?;
    let text = resolved.to_yaml();
    let request = Request {
        config,
        name,
        text,
        resume: args.resume.clone(),
        executor: Arc::new(executor),
        interrupted: interrupted.clone(),
    };
    run::train(&request, &mut Console::new())?;
    // The run is saved: lost lines are no failure of it.
    arrived().unwrap_or_else(|e| warn(&format!("warning: {e}")));
    Ok(())
}

/// The configuration: of the command line, or, when going on from a snapshot without one, the snapshot's.
fn resolve(args: &Train, overrides: &[String]) -> anyhow::Result<(Resolved, String)> {
    if let (Some(path), None, None) = (&args.resume, &args.config_name, &args.config_path) {
        let (path, _) = checkpoint::newest_at(path)?;
        let meta = snapshot::peek(&path)?;
        let place = format!("{} (its configuration)", path.display());
        return Ok((config::load_stored(&place, &meta.config, overrides)?, meta.config_name));
    }
    let request = config::Request {
        name: args.config_name.clone(),
        path: args.config_path.clone(),
        overrides: overrides.to_vec(),
    };
    let resolved = config::load(&request)?;
    let name = resolved.name.clone();
    Ok((resolved, name))
}

/// Set at the first Ctrl-C (or SIGTERM): the run ends after the work in hand and is saved. A second one ends the
/// program at once.
fn on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        warn_after_ctrl_c(
            "ending as soon as the work in hand is done; press Ctrl-C again to end at once without saving",
        );
    })?;
    Ok(flag)
}
