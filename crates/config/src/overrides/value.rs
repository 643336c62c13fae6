//! The right side of an override: plain and quoted text, lists, `null`, `${a.b}`, and commas at the top that
//! make a sweep. Plain text keeps its form; the key's type reads it later.

use super::quote::argument;
use super::{Fault, Place};
use crate::error::ProblemKind;
use crate::node::{Data, Node};

/// Longer values, in bytes, are not repeated in a message.
const MAX_SHOWN: usize = 200;
/// Deepest list in a list.
const MAX_DEPTH: usize = 16;

/// Reads the values from byte `start` on: one, or several with commas between.
pub(super) fn parse(place: &Place, start: usize) -> Result<Vec<(String, Node)>, Fault> {
    if &place.text[start..] == "\t" {
        // What divides a table, as a shell writes it: `delimiter=$'\t'`.
        return Ok(vec![("\t".into(), Node { data: Data::quoted("\t"), origin: place.origin(start) })]);
    }
    let mut reader = Reader { place, text: &place.text, start, at: start };
    let mut values = Vec::new();
    loop {
        reader.spaces();
        let from = reader.at;
        let node = reader.element(0)?;
        let written = reader.text[from..reader.at].trim_end().to_owned();
        values.push((written, node));
        match reader.peek() {
            None => break,
            Some(',') => reader.at += 1,
            Some(other) => return Err(reader.unexpected(other)),
        }
    }
    // `k=` is Hydra's way to write empty text, but `k=a,` is a slip.
    match values.iter().position(|(written, _)| written.is_empty()) {
        Some(_) if values.len() > 1 => {
            let form = reader.form();
            Err(reader.fault(&format!("a value is missing beside a comma; quote a comma that is text{form}")))
        }
        _ => Ok(values),
    }
}

struct Reader<'a> {
    place: &'a Place,
    text: &'a str,
    /// Where the values begin.
    start: usize,
    /// Byte position, always on a character's start.
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn spaces(&mut self) {
        while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
    }

    fn fault(&self, what: &str) -> Fault {
        (self.at, ProblemKind::Syntax(what.into()))
    }

    fn unsupported(&self, what: &str) -> Fault {
        (self.at, ProblemKind::Unsupported(what.into()))
    }

    fn unexpected(&self, c: char) -> Fault {
        let form = self.form();
        match c {
            '(' | ')' => self.unsupported(&format!(
                "functions such as choice(...) or range(...) are not supported; quote text with brackets{form}"
            )),
            '{' | '}' => self.unsupported(&format!(
                "dictionaries are not supported; set keys one by one, or quote the text{form}"
            )),
            _ => self.fault(&format!("unexpected {c:?}; quote the whole value if it belongs to it{form}")),
        }
    }

    /// How the whole value is typed as text; nothing if it is quoted in part, or too long to show.
    fn form(&self) -> String {
        let (key, value) = (self.text[..self.start].trim_end_matches('='), self.text[self.start..].trim());
        let shown = !value.starts_with(['\'', '"', '['])
            && value.len() <= MAX_SHOWN
            && !value.contains(char::is_control);
        if shown { format!(", as a shell needs it: {}", argument(key, value)) } else { String::new() }
    }

    /// One value; stops before a comma, a closing bracket or the end.
    fn element(&mut self, depth: usize) -> Result<Node, Fault> {
        self.spaces();
        let origin = self.place.origin(self.at);
        let data = match self.peek() {
            Some('[') => self.list(depth)?,
            Some(quote @ ('\'' | '"')) => self.quoted(quote)?,
            _ => self.plain()?,
        };
        self.spaces();
        Ok(Node { data, origin })
    }

    fn list(&mut self, depth: usize) -> Result<Data, Fault> {
        if depth == MAX_DEPTH {
            return Err(self.fault("lists are nested too deeply"));
        }
        self.at += 1;
        let mut items = Vec::new();
        self.spaces();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Data::List(items));
        }
        loop {
            self.spaces();
            if matches!(self.peek(), Some(',' | ']')) {
                return Err(self.fault("a value is missing beside a comma"));
            }
            items.push(self.element(depth + 1)?);
            match self.peek() {
                Some(',') => self.at += 1,
                Some(']') => {
                    self.at += 1;
                    return Ok(Data::List(items));
                }
                Some(other) => return Err(self.unexpected(other)),
                None => return Err(self.fault("the list is not closed: `]` is missing")),
            }
        }
    }

    /// Within quotes backslashes have a meaning only before the quote itself: two stand for one, and one that is left
    /// over escapes the quote.
    fn quoted(&mut self, quote: char) -> Result<Data, Fault> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let slashes = rest.len() - rest.trim_start_matches('\\').len();
            self.at += slashes;
            let Some(c) = self.next() else { break };
            let kept = if c == quote { slashes / 2 } else { slashes };
            text.extend(std::iter::repeat_n('\\', kept));
            if c == quote && slashes.is_multiple_of(2) {
                return Ok(Data::quoted(text));
            }
            text.push(c);
        }
        self.at = start;
        Err(self.fault("the quote is not closed"))
    }

    /// Unquoted text; a backslash takes the meaning from the characters of the grammar.
    fn plain(&mut self) -> Result<Data, Fault> {
        let mut text = String::new();
        // Length that trimming may not go below: an escaped space at the end stays.
        let mut keep = 0;
        while let Some(c) = self.peek() {
            match c {
                ',' | ']' => break,
                '$' if self.text[self.at..].starts_with("${") => self.interpolation(&mut text)?,
                '[' | '{' | '}' | '(' | ')' | '\'' | '"' => return Err(self.unexpected(c)),
                '\\' => {
                    self.at += 1;
                    self.escaped(&mut text);
                    keep = text.len();
                }
                c => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        let length = text.trim_end_matches([' ', '\t']).len().max(keep);
        text.truncate(length);
        // Nothing at all, or an escape: it is text, never null or a number.
        Ok(if text.is_empty() || keep > 0 { Data::quoted(text) } else { Data::plain(text) })
    }

    fn escaped(&mut self, text: &mut String) {
        match self.peek() {
            Some(c) if "\\()[]{}:=, \t'\"".contains(c) => {
                text.push(c);
                self.at += c.len_utf8();
            }
            // Also `\${`, which keeps its backslash for the interpolation stage.
            _ => text.push('\\'),
        }
    }

    /// Copies `${...}` up to its closing brace.
    fn interpolation(&mut self, text: &mut String) -> Result<(), Fault> {
        let Some(length) = self.text[self.at..].find('}') else {
            return Err(self.fault("the interpolation is not closed: `}` is missing"));
        };
        let end = self.at + length + 1;
        if self.text[self.at + 2..end].contains("${") {
            return Err(self.unsupported("an interpolation within an interpolation is not supported"));
        }
        text.push_str(&self.text[self.at..end]);
        self.at = end;
        Ok(())
    }
}
