//! `ocelli explain`: what a training step would do.

mod device;
mod json;
mod text;

use super::step_of;
use crate::args::Explain as Args;
use crate::output::{arrived, say, say_json, warn};
use anyhow::bail;
use device::Peaks;
use ocelli_train::explain::{self, Explained};
use ocelli_train::groups;

/// Shows the programs of a training step.
pub fn explain(args: &Args) -> anyhow::Result<()> {
    let mut c = step_of::config(&args.step)?.for_training()?.clone();
    let target = args.device.target();
    super::device::settle(&mut c, &*target);
    let (setup, size) = step_of::setup(&args.step, &c)?;
    let programs = explain::step(&setup, size, &*target)?;
    if let Some(program) = programs.first() {
        groups::notes(&c, &program.plan.state)?.iter().for_each(|line| warn(&format!("note: {line}")));
    }
    if let Some(pass) = &args.graph {
        graph(&programs, pass)?;
        return arrived();
    }
    let peaks = Peaks::of(args.device, c.trainer.threads)?;
    if args.json {
        say_json(&json::object(&programs, &peaks, size));
    } else {
        say(&text::lines(&programs, &peaks, args.launches).join("\n"));
    }
    arrived()
}

/// The graphs behind one pass.
fn graph(programs: &[Explained], pass: &str) -> anyhow::Result<()> {
    let mut found = false;
    for p in programs {
        for stage in p.stages.iter().filter(|s| s.name == pass) {
            say(&format!("program {} behind {pass}:\n{}", p.plan.name, stage.text));
            found = true;
        }
    }
    if !found {
        let names: Vec<&str> = programs.iter().flat_map(|p| &p.stages).map(|s| s.name).collect();
        bail!("--graph {pass}: no such pass here; there are {}", names.join(", "));
    }
    Ok(())
}
