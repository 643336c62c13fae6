//! What a person sees of a run: a progress line on a terminal, plain lines otherwise.

use crate::output::{clear_progress, say, show_progress, warn};
use ocelli_train::report::{Attributes, Event, Progress, Reporter, Summary};
use std::io::IsTerminal;
use std::time::Duration;

/// Prints what a run tells: warnings to standard error, the rest to standard output.
pub struct Console {
    /// Both outputs are a terminal: progress is one line that changes.
    terminal: bool,
}

impl Console {
    /// A progress line on a terminal; plain lines if either output goes elsewhere.
    pub fn new() -> Self {
        Self { terminal: std::io::stdout().is_terminal() && std::io::stderr().is_terminal() }
    }

    fn progress(&self, p: &Progress) {
        if self.terminal {
            show_progress(p.step, p.total, speeds(p));
        } else {
            say(&format!("step {}/{} epoch {} {}", p.step, p.total, p.epoch, speeds(p)));
        }
    }
}

impl Drop for Console {
    /// However the run ends, the progress line goes.
    fn drop(&mut self) {
        clear_progress();
    }
}

impl Reporter for Console {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(text) => say(text),
            Event::Warning(text) => warn(&format!("warning: {text}")),
            Event::Step { epoch, step, time } => {
                let ms = time.as_secs_f64() * 1e3;
                say(&format!("[rank 0] epoch {epoch}, step {step}, dt: {ms:.2} ms"));
            }
            Event::Progress(p) => self.progress(p),
            Event::Validation { epoch, loss, epoch_ended: true, .. } => {
                say(&format!("Validation Loss after epoch {epoch}: {loss:.4}"));
            }
            Event::Validation { step, loss, .. } => {
                say(&format!("Validation Loss after step {step}: {loss:.4}"));
            }
            Event::Saved(path) => say(&format!("saved {}", path.display())),
            Event::Sample { truth, predicted } => say(&format!("  true:  {truth}\n  model: {predicted}")),
            Event::Attributes(a) => say(&attributes(a)),
            Event::Finished(summary) => {
                clear_progress();
                say(&finished(summary));
            }
        }
    }
}

fn speeds(p: &Progress) -> String {
    format!(
        "loss {:.4}, {:.0} images/s, {:.1} ms/step, data wait {:.1}%, ETA {}",
        p.loss,
        p.images_per_s,
        p.ms_per_step,
        p.data_wait * 100.0,
        clock(p.eta)
    )
}

fn attributes(a: &Attributes) -> String {
    format!(
        "attributes named right on {} held-out pictures: {:.1}% (a random caption: {:.1}%, the best constant \
         caption: {:.1}%)",
        a.pictures,
        a.right * 100.0,
        a.chance * 100.0,
        a.commonest * 100.0
    )
}

fn finished(s: &Summary) -> String {
    let mut lines = Vec::new();
    if !s.skipped.is_empty() {
        let reasons: Vec<String> = s.skipped.iter().map(|(r, n)| format!("{n} {r}")).collect();
        lines.push(format!("skipped samples: {} (listed in skipped.jsonl)", reasons.join(", ")));
    }
    for (n, what) in
        [(s.truncated, "captions cut to the length limit"), (s.replaced, "unknown characters replaced")]
    {
        if n > 0 {
            lines.push(format!("{n} {what}"));
        }
    }
    let rate = s.samples as f64 / s.training.as_secs_f64().max(1e-9);
    let how = if s.interrupted { "interrupted and saved" } else { "done" };
    lines.push(format!(
        "{how}: {} steps, {} samples in {} ({rate:.0} images/s)",
        s.steps,
        s.samples,
        clock(s.training)
    ));
    lines.join("\n")
}

/// `1:02:03`, or `2:03` under an hour.
fn clock(time: Duration) -> String {
    let s = time.as_secs_f64().round() as u64;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, m, s) => format!("{m}:{s:02}"),
        (h, m, s) => format!("{h}:{m:02}:{s:02}"),
    }
}
