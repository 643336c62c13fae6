//! What a person sees of a run: a progress line on a terminal, plain lines otherwise.

use indicatif::{ProgressBar, ProgressStyle};
use ocelli_train::report::{Attributes, Event, Progress, Reporter, Summary};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Standard output was closed, as by `| head`: nothing more is written there, and the work goes on.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Prints a line to standard output.
pub fn say(text: &str) {
    if !CLOSED.load(Ordering::Relaxed) && writeln!(std::io::stdout(), "{text}").is_err() {
        CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Prints a line to standard error, if anyone listens.
pub fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints an error with its causes.
pub fn error(error: &anyhow::Error) {
    // A cause whose text is already part of what was said adds nothing.
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    warn(&format!("error: {said}"));
}

/// Prints what a run tells, to standard output.
pub struct Console {
    bar: Option<ProgressBar>,
}

impl Console {
    /// A progress line on a terminal; plain lines if either output goes elsewhere.
    pub fn new() -> Self {
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        Self { bar: terminal.then(bar) }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }
}

/// Drawn for the first time at the first report.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Reporter for Console {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(text) => self.line(text),
            Event::Warning(text) => match &self.bar {
                Some(bar) => bar.suspend(|| warn(&format!("warning: {text}"))),
                None => warn(&format!("warning: {text}")),
            },
            Event::Step { epoch, step, time } => {
                self.line(&format!(
                    "[rank 0] epoch {epoch}, step {step}, dt: {:.2} ms",
                    time.as_secs_f64() * 1e3
                ));
            }
            Event::Progress(p) => match &self.bar {
                Some(bar) => {
                    bar.set_length(p.total);
                    bar.set_position(p.step);
                    bar.set_message(speeds(p));
                }
                None => say(&format!("step {}/{} epoch {} {}", p.step, p.total, p.epoch, speeds(p))),
            },
            Event::Validation { epoch, loss, epoch_ended: true, .. } => {
                self.line(&format!("Validation Loss after epoch {epoch}: {loss:.4}"));
            }
            Event::Validation { step, loss, .. } => {
                self.line(&format!("Validation Loss after step {step}: {loss:.4}"));
            }
            Event::Saved(path) => self.line(&format!("saved {}", path.display())),
            Event::Sample { truth, predicted } => {
                self.line(&format!("  true:  {truth}\n  model: {predicted}"))
            }
            Event::Attributes(a) => self.line(&attributes(a)),
            Event::Finished(summary) => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
                say(&finished(summary));
            }
        }
    }
}

fn speeds(p: &Progress) -> String {
    format!(
        "loss {:.4} | {:.0} images/s | {:.1} ms/step | data wait {:.1}% | ETA {}",
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
