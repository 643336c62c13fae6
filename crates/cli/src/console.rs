//! What a person sees of a run: a progress line on a terminal, plain lines otherwise.
//!
//! The training loss stays on the screen: before each validation loss and at the end there is a plain line of it.

use crate::finish::finished;
use crate::output::{clear_progress, say, show_progress, warn};
use crate::shown::line;
use ocelli_train::report::{Attributes, Event, Progress, Reporter};
use std::io::IsTerminal;
use std::time::Duration;

/// Prints what a run tells: warnings to standard error, the rest to standard output.
pub struct Console {
    /// Both outputs are a terminal: progress is one line that changes.
    terminal: bool,
    /// The last state of things, unless it stands on the screen as a plain line.
    unsaid: Option<String>,
    /// The file that is fetched.
    file: String,
}

impl Console {
    /// A progress line on a terminal; plain lines if either output goes elsewhere.
    pub fn new() -> Self {
        Self {
            terminal: std::io::stdout().is_terminal() && std::io::stderr().is_terminal(),
            unsaid: None,
            file: String::new(),
        }
    }

    fn progress(&mut self, p: &Progress) {
        let line = format!("step {}/{} epoch {} {}", p.step, p.total, p.epoch, speeds(p));
        if self.terminal {
            show_progress(p.step, p.total, speeds(p));
            self.unsaid = Some(line);
        } else {
            say(&line);
        }
    }

    /// On a terminal alone: elsewhere the line before has said it all.
    fn fetching(&mut self, name: &str, done: u64, total: u64) {
        if self.terminal {
            // Another file may have another unit: its line begins anew.
            if self.file != name {
                self.file = name.into();
                clear_progress();
            }
            let (unit, bytes) = if total < 10_000_000 { ("kB", 1_000) } else { ("MB", 1_000_000) };
            show_progress(done / bytes, total.div_ceil(bytes), format!("{unit} {name}"));
        }
    }

    /// Leaves the last state of things on the screen.
    fn keep(&mut self) {
        if let Some(line) = self.unsaid.take() {
            say(&line);
        }
    }
}

impl Drop for Console {
    /// However the run ends, the progress line goes and what it said stays.
    fn drop(&mut self) {
        clear_progress();
        self.keep();
    }
}

impl Reporter for Console {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(text) => say(text),
            Event::Warning(text) => warn(&format!("warning: {text}")),
            Event::Waiting(text) => warn(text),
            Event::Fetching { name, done, total } => self.fetching(name, *done, *total),
            Event::Fetched => clear_progress(),
            Event::Looked { done, total } if done < total && self.terminal => {
                show_progress(*done as u64, *total as u64, "rows".into());
            }
            Event::Looked { .. } => clear_progress(),
            Event::Step { epoch, step, time } => {
                let ms = time.as_secs_f64() * 1e3;
                say(&format!("[rank 0] epoch {epoch}, step {step}, dt: {ms:.2} ms"));
            }
            Event::Progress(p) => self.progress(p),
            Event::Validation { epoch, loss, epoch_ended: true, .. } => {
                self.keep();
                say(&format!("Validation Loss after epoch {epoch}: {loss:.4}"));
            }
            Event::Validation { step, loss, .. } => {
                self.keep();
                say(&format!("Validation Loss after step {step}: {loss:.4}"));
            }
            Event::Saved(path) => say(&format!("saved {}", path.display())),
            Event::Sample { truth, predicted } => {
                say(&format!("  true:  {}\n  model: {}", line(truth), line(predicted)));
            }
            Event::Attributes(a) => say(&attributes(a)),
            Event::Finished(summary) => {
                clear_progress();
                self.keep();
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

/// How many attributes were named right, in words.
pub fn attributes(a: &Attributes) -> String {
    format!(
        "attributes named right on {} held-out pictures: {:.1}% (a random caption: {:.1}%, the best constant \
         caption: {:.1}%)",
        a.pictures,
        a.right * 100.0,
        a.chance * 100.0,
        a.commonest * 100.0
    )
}

/// `1:02:03`, or `2:03` under an hour.
pub fn clock(time: Duration) -> String {
    let s = time.as_secs_f64().round() as u64;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, m, s) => format!("{m}:{s:02}"),
        (h, m, s) => format!("{h}:{m:02}:{s:02}"),
    }
}
