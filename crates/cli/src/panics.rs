//! No panic reaches a user as one: what is left is a defect of the program, and is said as that.

use ocelli_data::batch::reading_a_sample;
use std::io::Write;

/// Replaces the default hook. While a sample is being read a panic is caught and becomes a skipped sample, so
/// nothing is printed.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        if reading_a_sample() {
            return;
        }
        let what = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
        // Straight out: the panic may come from where the progress line is locked.
        let _ = writeln!(
            std::io::stderr(),
            "error: a defect of ocelli: {what}{place}\nPlease report it with the command that led here."
        );
    }));
}
