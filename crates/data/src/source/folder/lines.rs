//! `metadata.jsonl`: an object in JSON on each line. A line that is none, or whose caption is no text, is one bad row; what
//! speaks of the whole file (its end is cut off, another encoding) is refused with its line.

use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use serde_json::{Map, Value};

use super::metadata::{Rows, caption_wish, file_wish, used};
use crate::source::encoding::{Encoding, Guess};
use crate::source::standin::{self, Wanted};
use crate::source::table::{LEAVE_UTF_8, NAME_THE_ENCODING, Wish};
use crate::source::{Delimiter, SourceError, TextOptions, transcode};
use crate::text::printable;

/// A line with more bytes is none.
const MAX_LINE: u64 = 1 << 24;

/// Reads all lines into `rows`. Returns which columns are used.
pub(super) fn read(path: &Path, options: &TextOptions, rows: &mut Rows<'_>) -> Result<String, SourceError> {
    let mut file = standin::open(path, Wanted::Lines(options.encoding))?;
    let mut encoding = options.encoding;
    if !encoding.keeps_ascii(b'\n') {
        file = transcode::to_utf8(path, &file, encoding, Delimiter::COMMA)?;
        file.rewind().map_err(|e| SourceError::io(path, e))?;
        encoding = Encoding::UTF_8;
    }
    let mut reader = BufReader::new(file);
    let (mut bytes, mut row) = (Vec::new(), 0);
    let mut lines = Lines { options, encoding, guess: Guess::new(encoding), columns: None, first: None };
    for line in 1.. {
        bytes.clear();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut bytes);
        let read = read.map_err(|e| SourceError::io(path, e))?;
        if read == 0 {
            break;
        }
        let ended = bytes.ends_with(b"\n");
        let wrong = |found: String| SourceError::Record { path: path.to_path_buf(), line, row, found };
        if !ended && read as u64 == MAX_LINE {
            return Err(wrong(format!("a line of more than {MAX_LINE} bytes")));
        }
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
        if !text.is_empty() {
            lines.line(text, line, ended, rows).map_err(wrong)?;
            row += 1;
        }
    }
    if let Some(line) = lines.guess.utf8_since() {
        let found = format!("line {line}: this text and all others are UTF-8, not {}", encoding.name());
        return Err(SourceError::not_usable(path, format!("{found}. {LEAVE_UTF_8}")));
    }
    match (lines.columns, lines.first) {
        (Some(columns), _) => Ok(used(&columns.file, &columns.caption)),
        (None, Some((line, found))) => {
            Err(SourceError::Record { path: path.to_path_buf(), line, row: 0, found })
        }
        (None, None) => Err(SourceError::not_usable(path, "has no row")),
    }
}

/// The keys of an object that are used.
struct Columns {
    file: String,
    caption: String,
}

/// What is known of the lines so far.
struct Lines<'a> {
    options: &'a TextOptions,
    encoding: Encoding,
    guess: Guess,
    /// From the first line that has them.
    columns: Option<Columns>,
    /// The first line that is no row, and why.
    first: Option<(u64, String)>,
}

impl Lines<'_> {
    /// Takes one line; the error is about the whole file. `ended`: a line end follows.
    fn line(&mut self, bytes: &[u8], line: u64, ended: bool, rows: &mut Rows<'_>) -> Result<(), String> {
        self.guess.look(bytes, line);
        let text = self.encoding.decode(bytes).map_err(|bad| {
            let name = self.encoding.name();
            let advice = if std::str::from_utf8(bytes).is_ok() { LEAVE_UTF_8 } else { NAME_THE_ENCODING };
            let cut = if ended { "" } else { "The last line has no line end: is the file cut? Else: " };
            format!("not {name}, at its byte {}: `{}`. {cut}{advice}", bad.at + 1, bad.found)
        })?;
        let parsed = serde_json::from_str::<Map<String, Value>>(&text);
        if let Err(e) = &parsed
            && e.is_eof()
            && !ended
        {
            return Err(format!("{}. Is the file cut?", no_json(e, &text)));
        }
        match parsed.map_err(|e| no_json(&e, &text)) {
            Ok(object) => self.object(&object, line, rows),
            Err(found) => {
                self.first.get_or_insert_with(|| (line, found.clone()));
                rows.bad("", line, ("bad_json", found));
            }
        }
        Ok(())
    }

    /// Takes an object. One that lacks a column is a row without that value, wherever it stands: others have it, or the
    /// file is refused at its end.
    fn object(&mut self, object: &Map<String, Value>, line: u64, rows: &mut Rows<'_>) {
        let partly;
        let columns = match &mut self.columns {
            Some(columns) => columns,
            none => match find(object, self.options) {
                (Ok(file), Ok(caption)) => none.insert(Columns { file, caption }),
                (file, caption) => {
                    let missing = file.as_ref().err().or(caption.as_ref().err()).cloned();
                    self.first.get_or_insert_with(|| (line, missing.unwrap_or_default()));
                    partly = (file.ok(), caption.ok());
                    return row(object, (partly.0.as_deref(), partly.1.as_deref()), line, rows);
                }
            },
        };
        row(object, (Some(&columns.file), Some(&columns.caption)), line, rows);
    }
}

/// Adds the row that `object` is; `columns`: the keys of its file name and its caption, as far as it has them.
fn row(object: &Map<String, Value>, columns: (Option<&str>, Option<&str>), line: u64, rows: &mut Rows<'_>) {
    let value = |column: Option<&str>| column.and_then(|column| object.get(column));
    let called = |column: Option<&str>| column.unwrap_or_default().to_owned();
    let name = match value(columns.0) {
        Some(Value::String(name)) => name.as_str(),
        None | Some(Value::Null) => "",
        Some(other) => {
            let (column, kind) = (called(columns.0), kind(other));
            let found = format!("the row names no picture: `{column}` is {kind}, not text");
            return rows.bad("", line, ("empty_image", found));
        }
    };
    match captions(value(columns.1)) {
        Ok(captions) => rows.push(name, line, captions),
        Err(found) => rows.bad(name, line, ("bad_caption", format!("`{}` is {found}", called(columns.1)))),
    }
}

/// Why a line is no object, with what stands where the parser stopped.
fn no_json(error: &serde_json::Error, text: &str) -> String {
    let stopped = error.column().saturating_sub(1).min(text.len());
    let from = text.floor_char_boundary(stopped.saturating_sub(24));
    let shown = printable(&text.as_bytes()[from..], 48);
    let why = error.to_string().replace("at line 1 column", "at its byte");
    let near =
        text[text.floor_char_boundary(stopped.saturating_sub(1))..].trim_start_matches(['-', ' ', ':']);
    let word = ["NaN", "Infinity"].into_iter().find(|word| near.starts_with(word));
    let hint = match word {
        Some(word) => format!(": {word} is no value in JSON, although Python writes it; write null"),
        None if why.contains("hex escape") => {
            ": half of a pair such as \\ud83d\\ude00 is no character".into()
        }
        None => String::new(),
    };
    format!("no object in JSON ({why}){hint}: `{shown}`")
}

/// The columns of an object, of file names and of captions; an error says what it has instead.
fn find(
    object: &Map<String, Value>,
    options: &TextOptions,
) -> (Result<String, String>, Result<String, String>) {
    let names: Vec<String> = object.keys().cloned().collect();
    let find = |wish: Wish<'_>| wish.find(&names).map(|place| names[place].clone());
    (find(file_wish(options)), find(caption_wish(options, &names)))
}

/// One caption or a list of them; the error names what else it is.
fn captions(value: Option<&Value>) -> Result<Vec<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(list)) => {
            let text = |v: &Value| v.as_str().map(str::to_owned).ok_or_else(|| kind(v));
            let texts: Result<_, _> = list.iter().filter(|v| !v.is_null()).map(text).collect();
            texts.map_err(|kind| format!("a list with {kind}, not text"))
        }
        Some(other) => Err(format!("{}, not text", kind(other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
