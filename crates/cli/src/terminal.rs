//! The terminal as the progress line sees it: a little narrower than it is.
//!
//! The progress line leaves the cursor at the right edge. What the terminal shows for Ctrl-C, `^C`, would go to the next
//! line there, and the progress line, looked for on the last line, would stay on the screen.

use console::Term;
use indicatif::TermLike;
use std::io;

/// Columns for `^C`, and one more: a cursor at the very edge is where terminals differ.
const SPARE: u16 = 3;

/// Standard error without its last columns.
#[derive(Debug)]
pub struct Narrow(Term);

impl Narrow {
    /// Collects what is written until it is flushed, so that nothing half-drawn is seen.
    pub fn stderr() -> Self {
        Self(Term::buffered_stderr())
    }
}

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        self.0.size().1.saturating_sub(SPARE).max(1)
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}
