//! What a person sees of a run: a progress line on a terminal, plain lines otherwise.
//!
//! All lines go through [`say`] (standard output: what was asked for) or [`warn`] (standard error: what else is worth
//! knowing), so that the progress line is never torn and a closed output never stops the work.

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use ocelli_train::report::{Attributes, Event, Progress, Reporter, Summary};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Why standard output takes nothing more, as after `| head`. The work goes on without it.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// The progress line on the terminal now. Global, for Ctrl-C's hint comes from another thread.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints a line to standard output. After the first failure nothing more is written.
pub fn say(text: &str) {
    if LOST.get().is_some() {
        return;
    }
    let mut written = Ok(());
    beside_the_bar(|| written = writeln!(std::io::stdout(), "{text}"));
    if let Err(error) = written {
        let _ = LOST.set(error);
    }
}

/// Prints a line to standard error, if anyone listens.
pub fn warn(text: &str) {
    beside_the_bar(|| {
        let _ = writeln!(std::io::stderr(), "{text}");
    });
}

/// Whether all lines arrived. A reader that has seen enough is no failure.
///
/// # Errors
/// If standard output could not be written, as on a full disk.
pub fn arrived() -> anyhow::Result<()> {
    match LOST.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            bail!("cannot write to standard output: {error}")
        }
        _ => Ok(()),
    }
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

/// Takes the progress line away for as long as something else is written.
fn beside_the_bar(write: impl FnOnce()) {
    let bar = with_bar(|bar| bar.clone());
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn with_bar<T>(f: impl FnOnce(&mut Option<ProgressBar>) -> T) -> T {
    f(&mut BAR.lock().unwrap_or_else(PoisonError::into_inner))
}

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
        if !self.terminal {
            return say(&format!("step {}/{} epoch {} {}", p.step, p.total, p.epoch, speeds(p)));
        }
        // Made at the first report: there is nothing to show before.
        let bar = with_bar(|bar| bar.get_or_insert_with(bar_style).clone());
        bar.set_length(p.total);
        bar.set_message(speeds(p));
        bar.set_position(p.step);
    }
}

impl Drop for Console {
    /// However the run ends, the progress line goes.
    fn drop(&mut self) {
        clear();
    }
}

fn clear() {
    if let Some(bar) = with_bar(Option::take) {
        bar.finish_and_clear();
    }
}

/// The bar takes the width that is left, none on a narrow terminal: the numbers come first.
fn bar_style() -> ProgressBar {
    let style = ProgressStyle::with_template("{pos}/{len} {msg} {wide_bar}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
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
                clear();
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
