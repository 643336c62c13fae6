//! Text as it has to be written to be read as itself: the opposite of reading.

use crate::interpolate;

/// The override that sets `key` to exactly `text`: quotes, backslashes, commas and `${` in it stand for themselves.
pub fn literal(key: &str, text: &str) -> String {
    format!("{key}={}", quoted(&interpolate::escape(text), '\''))
}

/// `text` in quotes. Backslashes before a quote are doubled, for there they would escape it.
fn quoted(text: &str, quote: char) -> String {
    let mut written = String::from(quote);
    let mut slashes = 0;
    for c in text.chars().chain([quote]) {
        if c == quote {
            written.extend(std::iter::repeat_n('\\', slashes));
            written.push('\\');
        }
        slashes = if c == '\\' { slashes + 1 } else { 0 };
        written.push(c);
    }
    // The last quote closes.
    written.truncate(written.len() - 2);
    written.push(quote);
    written
}

/// `key=value` as one argument of a shell's, the value in quotes of its own.
pub(crate) fn argument(key: &str, value: &str) -> String {
    let whole = format!("{key}={}", quoted(value, '"'));
    format!("'{}'", whole.replace('\'', r"'\''"))
}
