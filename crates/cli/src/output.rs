//! Lines to standard output and standard error, beside a progress line.
//!
//! All lines go through [`say`] (standard output: what was asked for) or [`warn`] (standard error: what else is worth
//! knowing), so that the progress line is never torn, a closed output never stops the work, and nothing that others wrote
//! acts on a terminal.

use crate::shown;
use crate::terminal::Narrow;
use anyhow::bail;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How often a second the progress line is drawn, at most.
const REDRAWS: u8 = 20;

/// Why standard output takes nothing more, as after `| head`. The work goes on without it.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// The progress line on the terminal now. Global, for Ctrl-C's hint comes from another thread.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints a line, or several, to standard output. After the first failure nothing more is written.
pub fn say(text: &str) {
    print(&shown::text(text));
}

/// Prints a JSON value as a line to standard output.
pub fn say_json(value: &Value) {
    print(&shown::json(value));
}

fn print(text: &str) {
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
        let _ = writeln!(std::io::stderr(), "{}", shown::text(text));
    });
}

/// The same after Ctrl-C. A terminal shows that as `^C`: the line begins under it, or where the progress line was.
pub fn warn_after_ctrl_c(text: &str) {
    let echoed = std::io::stderr().is_terminal() && with_bar(|bar| bar.is_none());
    warn(&format!("{}{text}", if echoed { "\n" } else { "" }));
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
    warn(&format!("error: {}", chain(error)));
}

/// An error with its causes.
pub fn chain(error: &anyhow::Error) -> String {
    // A cause whose text is already part of what was said adds nothing.
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
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

/// Shows how far the work is, on the terminal's last line.
pub fn show_progress(done: u64, total: u64, message: String) {
    // Made at the first report: there is nothing to show before.
    let bar = with_bar(|bar| bar.get_or_insert_with(new_bar).clone());
    bar.set_length(total);
    bar.set_message(shown::line(&message).into_owned());
    bar.set_position(done);
}

/// Takes the progress line away for good.
pub fn clear_progress() {
    if let Some(bar) = with_bar(Option::take) {
        bar.finish_and_clear();
    }
}

/// The bar takes the width that is left, none on a narrow terminal: the numbers come first.
fn new_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{pos}/{len} {msg} {wide_bar}");
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(Narrow::stderr()), REDRAWS);
    ProgressBar::with_draw_target(Some(0), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
