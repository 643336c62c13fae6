//! A file that would pass the system's limit on its size (`ulimit -f`) is an error like others, with a message, and not
//! the end of the program.

/// Catches the signal. The write that caused it then fails with "File too large".
#[cfg(unix)]
pub fn install() {
    use std::sync::{Arc, atomic::AtomicBool};
    // Without it the program ends as it would have: nothing to report.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub fn install() {}
