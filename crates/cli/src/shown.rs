//! Text of others (captions, names, messages that hold them) as it may reach a terminal.
//!
//! Invariant: nothing of it acts on the terminal instead of being seen: control characters and the marks that turn the
//! direction of text around are escaped. Our own lines keep their ends.

use serde_json::Value;
use std::borrow::Cow;

/// Text of several lines, with our own line ends in it.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| acts(c) && c != '\n')
}

/// Text of others that is to stay on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// JSON on one line: it says the same, with escapes of its own.
pub fn json(value: &Value) -> String {
    let raw = value.to_string();
    raw.chars().map(|c| if acts(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return text.into();
    }
    text.chars()
        .map(|c| if acts(c) { c.escape_default().to_string() } else { c.to_string() })
        .collect::<String>()
        .into()
}

/// True if something in a text would act on a terminal, lines' ends among it.
pub fn hostile(text: &str) -> bool {
    text.contains(acts)
}

/// C0, DEL, C1, and the marks that embed, override or isolate a direction of text.
fn acts(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOSTILE: &str = "a\u{1b}[2Jb\u{9b}c\u{7f}\r\n\u{202e}\u{e9}";

    #[test]
    fn what_acts_is_escaped_and_the_rest_is_as_it_was() {
        assert_eq!(text(HOSTILE), "a\\u{1b}[2Jb\\u{9b}c\\u{7f}\\r\n\\u{202e}\u{e9}");
        assert_eq!(line("a\nb\tc"), "a\\nb\\tc");
        assert!(matches!(text("gr\u{fc}n \u{5d0}\n\u{1f600}"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_says_the_same() {
        let value = json!({ HOSTILE: HOSTILE });
        let shown = json(&value);
        assert!(!shown.contains(acts), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }
}
