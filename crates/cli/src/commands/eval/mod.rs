//! `ocelli eval`: how good a trained model is.

mod show;

use super::data::{Aside, split};
use super::train::on_interrupt_say;
use super::{device, same_file};
use crate::args::Eval as Args;
use crate::console::Console;
use crate::output::{arrived, say, say_json, warn};
use anyhow::{Context, bail};
use ocelli_data::text::count;
use ocelli_train::evaluate::{self, Evaluated, Request};
use ocelli_train::look;
use ocelli_train::snapshot::{try_folder, write_whole};
use ocelli_train::trained::Saved;
use std::path::Path;

/// Measures a snapshot on the rows that validated it, or on other data.
pub fn eval(args: &Args) -> anyhow::Result<()> {
    let (sources, given) = split(&args.source);
    let (source, overrides) = match &sources[..] {
        [] => (None, given),
        [source] => match look::overrides(source, &given) {
            Some(overrides) => (Some(source), overrides),
            None => bail!(
                "{source}: pictures without captions, and captions are what a model is measured by. `ocelli caption` \
                 says what it sees"
            ),
        },
        more => bail!(
            "{} are named, one is evaluated at a time: {}",
            count(more.len(), "source"),
            more.join(", ")
        ),
    };
    if let Some(out) = &args.out {
        writable(out)?;
    }
    let mut saved = Saved::open(&args.snapshot, &overrides)?;
    let read = [Some(saved.path.as_path()), source.map(Path::new)];
    if let Some(out) = args.out.as_ref().filter(|out| read.iter().flatten().any(|read| same_file(read, out)))
    {
        bail!("--out {} would replace what is read: choose another name", out.display());
    }
    saved.refused.iter().for_each(|e| warn(&format!("warning: {e}")));
    saved.config.trainer.threads = args.threads.map(|n| n as usize).or(saved.config.trainer.threads);
    let executor = device::start(&mut saved.config, None, &mut warn)?;
    let request = Request {
        saved,
        other_data: source.is_some(),
        limit: args.limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        executor,
        interrupted: on_interrupt_say(
            "ending as soon as the batch in hand is done, without figures; press Ctrl-C again to end at once",
        )?,
    };
    let found = evaluate::evaluate(request, &mut Aside(Console::new()))?;
    if let Some(out) = &args.out {
        write_whole(out, show::lines(&found).as_bytes())?;
    }
    if args.json {
        say_json(&show::json(&found));
    } else {
        say(&show::text(&found, args.out.as_deref()));
    }
    arrived()?;
    too_many(&found)
}

/// Finds out before the work whether its results can be written.
fn writable(out: &Path) -> anyhow::Result<()> {
    if out.is_dir() {
        bail!("--out {}: it is a folder, and a file is wanted", out.display());
    }
    // A device is written to as it is.
    if out.is_file() || !out.exists() {
        let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        try_folder(folder, 0).with_context(|| format!("--out {}", out.display()))?;
    }
    Ok(())
}

/// Figures over what is left of very bad data are no success.
fn too_many(found: &Evaluated) -> anyhow::Result<()> {
    if !found.too_many_skipped() {
        return Ok(());
    }
    bail!(
        "{} of {} could not be used, more than data_config.max_skip_ratio={}: the figures are of the others",
        found.skipped(),
        count(found.rows, "row"),
        found.skip_limit
    )
}
