//! `ocelli bench ladder`: what each trick of the published post is worth on this machine.

mod chart;
mod climb;
mod machine;
mod page;
mod report;
mod runner;
mod table;
mod tricks;

use super::batches;
use crate::args::BenchLadder as Args;
use crate::commands::train::on_interrupt_say;
use crate::commands::{device, step_of};
use crate::output::{arrived, say, say_json, warn};
use anyhow::{Context, bail};
use climb::{Climb, Common};
use ocelli_config::{self as config, Request};
use ocelli_train::snapshot::{try_folder, write_whole};
use report::{Ladder, Machine, Ocelli, Settings, Status};
use std::path::Path;
use std::time::SystemTime;

/// Climbs the ladder, and writes what it found.
pub fn ladder(args: &Args) -> anyhow::Result<()> {
    if let Some(key) = tricks::taken(&args.step.overrides) {
        bail!("{key}: the ladder switches this key itself; leave it out");
    }
    try_out(&args.out)?;
    let (common, settings, machine) = foot(args)?;
    let mut climb = Climb::new(&common);
    let rungs = climb.up()?;
    let Some(_) = rungs.iter().find(|r| r.status == Status::Measured) else {
        let why = rungs.iter().find_map(|r| r.why.clone()).unwrap_or_default();
        bail!("no rung of the ladder could be measured: {why}");
    };
    let without = climb.without()?;
    let commit = option_env!("OCELLI_COMMIT").filter(|c| !c.is_empty());
    let ladder = Ladder {
        schema: "ocelli-ladder",
        version: report::VERSION,
        made: ocelli_train::run_dir::stamp(SystemTime::now()),
        ocelli: Ocelli { version: env!("CARGO_PKG_VERSION"), commit },
        machine,
        settings,
        rungs,
        without,
    };
    write(&args.out, &ladder)?;
    if args.json {
        say_json(&serde_json::to_value(&ladder)?);
    } else {
        say(&table::text(&ladder));
        say(&format!("written: ladder.json and ladder.html in {}", args.out.display()));
    }
    arrived()
}

/// What all rungs have in common: the step that `train` would take, but for the tricks.
fn foot(args: &Args) -> anyhow::Result<(Common, Settings, Machine)> {
    let interrupted =
        on_interrupt_say("ending after this turn, without figures; press Ctrl-C again to end at once")?;
    let mut request = Request {
        name: args.step.named.config_name.clone(),
        path: args.step.named.config_path.clone(),
        overrides: args.step.overrides.clone(),
    };
    let resolved = config::load(&with(&request, false))?;
    notices(&request).iter().for_each(|line| warn(&format!("note: {line}")));
    let mut c = resolved.for_training()?.clone();
    let executor = device::start(&mut c, Some(&[]), &mut warn)?;
    let machine = machine::machine(executor.target().name());
    // What `auto` found is not looked for again.
    request.overrides.push(format!("trainer_config.device={}", machine.device));
    let (setup, longest) = step_of::setup_until(&args.step, &c, || Ok(interrupted.clone()))?;
    let size = step_of::sized(&c, longest, args.size.batch, args.size.length)?;
    let (vocab, steps, rounds) = (setup.model.vocab_size(), args.steps as usize, args.rounds as usize);
    let settings = Settings {
        config: resolved.name.clone(),
        overrides: args.step.overrides.clone(),
        batch: size.batch,
        length: size.text,
        vocab,
        grad_accum: c.trainer.grad_accum,
        seed: c.trainer.seed,
        steps,
        rounds,
        warm_up: batches::WARM_UP,
    };
    let common = Common {
        request,
        size,
        vocab,
        longest: setup.captions.positions - 1,
        total: setup.optimizer.as_ref().map_or(1, |o| o.schedule.total),
        batches: batches::all(size, setup.model.picture_side(), vocab),
        rows: size.batch * c.trainer.grad_accum,
        steps,
        rounds,
        interrupted,
    };
    Ok((common, settings, machine))
}

/// A request with all tricks on, or all off.
fn with(request: &Request, on: bool) -> Request {
    let overrides = [&request.overrides[..], &tricks::overrides(&[on; tricks::TRICKS.len()])].concat();
    Request { overrides, ..request.clone() }
}

/// What is to be said of keys that are not the ladder's, when everything is on.
fn notices(request: &Request) -> Vec<String> {
    // Refused combinations are told of where they are measured.
    config::load(&with(request, true)).map(|resolved| resolved.notices).unwrap_or_default()
}

/// The two files.
const FILES: [&str; 2] = ["ladder.html", "ladder.json"];

/// Tries whether they can be written: better known before the work than after it.
fn try_out(out: &Path) -> anyhow::Result<()> {
    try_folder(out, 0).context("--out")?;
    for path in FILES.map(|name| out.join(name)) {
        if path.is_dir() {
            bail!("--out: {} is a folder, and a file is to go there", path.display());
        }
    }
    Ok(())
}

/// Writes both files; none gets its name before both are whole.
fn write(out: &Path, ladder: &Ladder) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(ladder)? + "\n";
    let new = |name: &str| out.join(format!(".{name}.new"));
    let written = FILES
        .iter()
        .zip([page::page(ladder), json])
        .try_for_each(|(name, text)| write_whole(&new(name), text.as_bytes()).map_err(anyhow::Error::from));
    let renamed = written.and_then(|()| {
        FILES.iter().try_for_each(|name| {
            let to = out.join(name);
            std::fs::rename(new(name), &to).with_context(|| format!("cannot write {}", to.display()))
        })
    });
    renamed.inspect_err(|_| {
        for name in FILES {
            // It may not be there; the first error is the one to tell.
            let _ = std::fs::remove_file(new(name));
        }
    })
}
