//! From the arguments to a training step that is looked at instead of run.

use super::data::Aside;
use super::train::on_interrupt;
use crate::args::StepOf;
use crate::console::Console;
use crate::output::warn;
use anyhow::bail;
use ocelli_config::{self as config, Config, Resolved};
use ocelli_train::engine::Setup;
use ocelli_train::program::Size;
use ocelli_train::run;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The configuration of the step.
pub fn config(args: &StepOf) -> anyhow::Result<Resolved> {
    let request = config::Request {
        name: args.named.config_name.clone(),
        path: args.named.config_path.clone(),
        overrides: args.overrides.clone(),
    };
    let resolved = config::load(&request)?;
    resolved.notices.iter().for_each(|line| warn(&format!("note: {line}")));
    Ok(resolved)
}

/// What the step's programs are made from, and the size that `train` would give it, under a configuration that its device has settled.
pub fn setup(args: &StepOf, c: &Config) -> anyhow::Result<(Setup, Size)> {
    setup_until(args, c, on_interrupt)
}

/// As [`setup`]; opening the data ends when the flag of `interrupt` is set.
pub fn setup_until(
    args: &StepOf,
    c: &Config,
    interrupt: impl FnOnce() -> anyhow::Result<Arc<AtomicBool>>,
) -> anyhow::Result<(Setup, Size)> {
    let places = c.model.max_positions - 1;
    Ok(match args.vocab {
        Some(vocab) => {
            let text = c.data.max_seq_length.unwrap_or(places);
            let setup = run::setup(c, vocab as usize, text, c.trainer.max_iters.unwrap_or(1))?;
            (setup, Size { batch: c.trainer.train_batch_size, text })
        }
        None => run::outlook(c, &*interrupt()?, &mut Aside(Console::new()))?,
    })
}

/// A size with numbers that were asked for, if the model has room for it.
pub fn sized(c: &Config, size: Size, batch: Option<u64>, length: Option<u64>) -> anyhow::Result<Size> {
    let places = c.model.max_positions - 1;
    let size = Size {
        batch: batch.map_or(size.batch, |n| n as usize),
        text: length.map_or(size.text, |n| n as usize),
    };
    if size.text > places {
        bail!(
            "--length {}: the model has {places} places for text; set model_config.max_positions to {} or more",
            size.text,
            size.text + 1
        );
    }
    Ok(size)
}
