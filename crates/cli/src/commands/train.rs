//! `ocelli train`: from the command line to a run.

use super::device;
use super::sweep::sweep;
use crate::args::Train;
use crate::console::Console;
use crate::output::{arrived, say, warn, warn_after_ctrl_c};
use anyhow::bail;
use ocelli_config::{self as config, Dataset, Resolved};
use ocelli_data::hub::{self, HubError};
use ocelli_train::TrainError;
use ocelli_train::checkpoint;
use ocelli_train::run::{self, Request};
use ocelli_train::snapshot::{self, SnapshotError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Trains once, or once for each combination of a sweep.
pub fn train(args: &Train) -> anyhow::Result<()> {
    if args.multirun {
        return sweep(args);
    }
    let job = Job::new(args, &args.overrides)?;
    if args.print_config {
        job.print();
        return arrived();
    }
    job.run(args, &on_interrupt()?)
}

/// One run, not yet started.
pub(super) struct Job {
    resolved: Resolved,
    /// For run folders.
    name: String,
}

impl Job {
    /// Reads and checks the configuration.
    pub(super) fn new(args: &Train, overrides: &[String]) -> anyhow::Result<Self> {
        let (resolved, name) = resolve(args, overrides)?;
        Ok(Self { resolved, name })
    }

    /// What can be known before the data are opened: that this version can do it, and that its files are there.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let c = self.resolved.for_training()?;
        let from_file = matches!(c.data.dataset, Dataset::Csv | Dataset::Tsv | Dataset::Folder);
        let data = c.data.data_path.as_deref().filter(|_| from_file).map(Path::new);
        for (key, path) in [
            ("data_config.data_path", data),
            ("data_config.vocab_path", c.data.vocab_file()),
            ("model_config.init_from", c.model.init_from.as_deref().map(Path::new)),
        ] {
            if let Some(Err(e)) = path.map(std::fs::metadata) {
                let path = path.unwrap_or(Path::new(""));
                bail!("{key}: {}: {e}", path.display());
            }
        }
        if c.data.dataset == Dataset::Coco {
            hub::place(c.data.data_path.as_deref().unwrap_or_default(), c.data.revision.as_deref())?;
        }
        Ok(())
    }

    /// Shows the configuration.
    pub(super) fn print(&self) {
        say(self.resolved.to_yaml_with_sources().trim_end());
    }

    /// Trains.
    pub(super) fn run(self, args: &Train, interrupted: &Arc<AtomicBool>) -> anyhow::Result<()> {
        self.resolved.notices.iter().for_each(|line| say(&format!("note: {line}")));
        let (config, executor) = device::of(&self.resolved, &mut say)?;
        let request = Request {
            config,
            name: self.name,
            text: self.resolved.to_yaml(),
            resume: args.resume.clone(),
            executor,
            interrupted: interrupted.clone(),
        };
        match run::train(&request, &mut Console::new()) {
            // Nothing has begun, and nothing is lost.
            Err(TrainError::Hub(error @ HubError::Interrupted { .. })) => say(&error.to_string()),
            done => drop(done?),
        }
        // The run is saved: lost lines are no failure of it.
        arrived().unwrap_or_else(|e| warn(&format!("warning: {e}")));
        Ok(())
    }
}

/// The configuration: of the command line, or, when going on from a snapshot without one, the snapshot's.
fn resolve(args: &Train, overrides: &[String]) -> anyhow::Result<(Resolved, String)> {
    if let (Some(path), None, None) = (&args.resume, &args.config_name, &args.config_path) {
        let (path, _) = checkpoint::newest_at(path)?;
        let meta = snapshot::peek(&path).map_err(|e| worse(&path, e))?;
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

/// What makes a foreign file useless even as weights is said before that it is foreign.
fn worse(path: &Path, error: SnapshotError) -> SnapshotError {
    match error {
        SnapshotError::Foreign { .. } => snapshot::verify(path).err().unwrap_or(error),
        _ => error,
    }
}

/// As [`on_interrupt_say`], for a run, which ends after the work in hand and is saved.
pub(super) fn on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    on_interrupt_say(
        "ending as soon as the work in hand is done; press Ctrl-C again to end at once without saving",
    )
}

/// Set at the first Ctrl-C (or SIGTERM), which `hint` answers. A second one ends the program at once.
pub(super) fn on_interrupt_say(hint: &'static str) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        warn_after_ctrl_c(hint);
    })?;
    Ok(flag)
}
