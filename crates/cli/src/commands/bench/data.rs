//! `ocelli bench data`: how many pictures a second come from a source, and what each stage takes of it.

use crate::args::BenchData as Args;
use crate::commands::data::{request, split};
use crate::output::{arrived, say, say_json, warn};
use anyhow::bail;
use ocelli_data::stages::Stage;
use ocelli_data::text::count;
use ocelli_train::look::{self, Epoch, Pace};
use ocelli_train::report::{Event, Reporter};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Tells of a fetch, on standard error; not of progress, for the clock runs.
struct Quiet;

impl Reporter for Quiet {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Note(line) | Event::Warning(line) = event {
            warn(line);
        }
    }
}

/// Times a source.
pub fn data(args: &Args) -> anyhow::Result<()> {
    let (sources, overrides) = split(&args.source);
    let [source] = &sources[..] else {
        bail!("one source is timed at a time, not {}: give a file or a folder", sources.len());
    };
    let pace = look::pace(&request(source, &args.named, &overrides), args.epochs, &mut Quiet)?;
    if args.json {
        say_json(&as_json(source, &pace));
    } else {
        say(&as_text(&pace));
    }
    arrived()
}

/// Rate of `images` in so many seconds; of nothing, none.
fn rate(images: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { images as f64 / seconds } else { 0.0 }
}

fn as_text(p: &Pace) -> String {
    let mut lines = p.notes.clone();
    let workers = count(p.workers, "worker");
    lines.push(format!("{}: batches of {}, {workers}, on {}", p.source, p.batch, count(cores(), "core")));
    for (i, e) in p.epochs.iter().enumerate() {
        let seconds = e.time.as_secs_f64();
        lines.push(format!(
            "epoch {}{}: {} in {seconds:.2} s, {:.0} images/s ({:.0} a core)",
            i + 1,
            if e.cached { " (from a cache)" } else { "" },
            count(e.images, "image"),
            rate(e.images, seconds),
            rate(e.images, seconds) / cores().min(p.workers.max(1)) as f64,
        ));
        lines.extend(Stage::ALL.iter().map(|stage| stage_text(e, *stage)));
        if e.skipped > 0 {
            lines.push(format!("  skipped: {}", count(e.skipped, "row")));
        }
    }
    lines.push("copy: none, pictures are scaled into their place in the batch".into());
    lines.join("\n")
}

fn stage_text(e: &Epoch, stage: Stage) -> String {
    let seconds = e.stages[stage as usize].as_secs_f64();
    let each = 1e6 * seconds / e.images.max(1) as f64;
    let name = stage.name();
    format!("  {name:<8}{each:>9.1} us an image, {:>9.0} images/s a thread", rate(e.images, seconds))
}

fn as_json(source: &str, p: &Pace) -> Value {
    let stages = |e: &Epoch| {
        let one = |stage: &Stage| {
            let seconds = e.stages[*stage as usize].as_secs_f64();
            (stage.name(), json!({"seconds": seconds, "images_per_s_a_thread": rate(e.images, seconds)}))
        };
        Stage::ALL.iter().map(one).collect::<BTreeMap<_, _>>()
    };
    let epoch = |e: &Epoch| {
        let seconds = e.time.as_secs_f64();
        json!({
            "cached": e.cached, "images": e.images, "skipped": e.skipped, "seconds": seconds, "images_per_s": rate(e.images, seconds),
            "stages": stages(e),
        })
    };
    json!({
        "source": source, "rows": p.source, "batch": p.batch, "workers": p.workers, "cores": cores(), "notes": p.notes,
        "epochs": p.epochs.iter().map(epoch).collect::<Vec<_>>(),
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
