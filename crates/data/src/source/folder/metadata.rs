//! `metadata.csv` and `metadata.jsonl`: file names and captions. Rows of one file are one picture with several
//! captions, wherever they stand.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::items::{Item, Items};
use super::layout::Scope;
use crate::source::SourceError;
use crate::source::TextOptions;
use crate::source::name::{Name, Root};
use crate::source::standin::{self, Wanted};
use crate::source::table::{Table, Wish};

/// A line of JSON with more bytes is none.
const MAX_LINE: u64 = 1 << 24;

/// Reads the metadata of a scope.
pub(super) fn read(path: &Path, scope: &Scope, options: &TextOptions) -> Result<Items, SourceError> {
    let mut rows = Rows {
        root: Root::new(&scope.base),
        under: scope.under.as_deref(),
        pictures: Vec::new(),
        places: HashMap::new(),
    };
    let note = if path.extension().is_some_and(|e| e == "csv") {
        table(path, options, &mut rows)?
    } else {
        lines(path, options, &mut rows)?
    };
    let mut items = Items { notes: vec![note], ..Items::default() };
    for (item, captions) in rows.pictures {
        if item.name.as_os_str().is_empty() {
            items.captions.push_bad("empty_image", NAMELESS.into());
        } else {
            items.captions.push(captions);
        }
        items.pictures.push(item);
    }
    Ok(items)
}

/// What is wrong with a row without a file's name.
const NAMELESS: &str = "the row names no picture: its file name is missing or empty";

/// Pictures in the order in which they are first named; a row that names none stands alone.
struct Rows<'a> {
    root: Root,
    under: Option<&'a str>,
    pictures: Vec<(Item, Vec<String>)>,
    places: HashMap<PathBuf, usize>,
}

impl Rows<'_> {
    fn push(&mut self, raw: &str, line: u64, captions: Vec<String>) {
        let (name, outside) = match self.root.name(raw) {
            Name::Inside(name) => (name, false),
            Name::Outside(name) => (name, true),
        };
        if self.under.is_some_and(|under| !outside && !name.starts_with(under)) {
            return;
        }
        match self.places.get(&name) {
            _ if name.as_os_str().is_empty() => {
                self.pictures.push((Item { name, outside: false, line: Some(line) }, captions));
            }
            Some(&place) => self.pictures[place].1.extend(captions),
            None => {
                self.places.insert(name.clone(), self.pictures.len());
                self.pictures.push((Item { name, outside, line: Some(line) }, captions));
            }
        }
    }
}

/// The column with file names. The published presets name a column for base64, which no metadata have.
fn file_wish(options: &TextOptions) -> Wish<'_> {
    let given = options.image_col.as_deref().filter(|given| *given != "b64string_images");
    Wish { given, usual: &["file_name"], key: "data_config.image_col" }
}

/// The column with captions. `caption` may come from a published preset, and be called otherwise here.
fn caption_wish<'a>(options: &'a TextOptions, names: &[String]) -> Wish<'a> {
    let given = options.caption_col.as_deref();
    Wish::caption(given.filter(|given| *given != "caption" || names.iter().any(|n| n == given)))
}

fn used(file: &str, caption: &str) -> String {
    format!("columns: `{file}` holds file names, `{caption}` captions")
}

fn table(path: &Path, options: &TextOptions, rows: &mut Rows<'_>) -> Result<String, SourceError> {
    let table = Table::open(path, options.delimiter, options.encoding)?;
    let file = table.column(&file_wish(options))?;
    let caption = table.column(&caption_wish(options, table.names()))?;
    table.records(None, |row, record| {
        let text = |column: usize| {
            let text = table.text(&record.fields[column]).map(std::borrow::Cow::into_owned);
            text.map_err(|found| table.record_error(row, record.line, found))
        };
        rows.push(&text(file)?, record.line, vec![text(caption)?]);
        Ok(())
    })?;
    Ok(used(table.name(file), table.name(caption)))
}

fn lines(path: &Path, options: &TextOptions, rows: &mut Rows<'_>) -> Result<String, SourceError> {
    let file = standin::open(path, Wanted::Lines)?;
    let mut reader = BufReader::new(file);
    let (mut bytes, mut row, mut columns) = (Vec::new(), 0, None);
    for line in 1.. {
        bytes.clear();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut bytes);
        if read.map_err(|e| SourceError::io(path, e))? == 0 {
            break;
        }
        let wrong = |found: String| SourceError::Record { path: path.to_path_buf(), line, row, found };
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
        if text.is_empty() {
            continue;
        }
        let object: Map<String, Value> = serde_json::from_slice(text).map_err(|e| {
            let shown = text[..text.len().min(60)].escape_ascii();
            wrong(format!("no object in JSON ({e}): `{shown}`. Is the file cut?"))
        })?;
        let (file, caption) = match &columns {
            Some(columns) => columns,
            None => columns.insert(find(&object, options).map_err(wrong)?),
        };
        let name = match object.get(file) {
            Some(Value::String(name)) => name.as_str(),
            None | Some(Value::Null) => "",
            Some(other) => return Err(wrong(format!("`{file}` is {}, not text", kind(other)))),
        };
        rows.push(
            name,
            line,
            captions(object.get(caption)).map_err(|e| wrong(format!("`{caption}` is {e}")))?,
        );
        row += 1;
    }
    let Some((file, caption)) = columns else {
        return Err(SourceError::not_usable(path, "has no row"));
    };
    Ok(used(&file, &caption))
}

/// The columns, from the first row; the error says what it has instead.
fn find(object: &Map<String, Value>, options: &TextOptions) -> Result<(String, String), String> {
    let names: Vec<String> = object.keys().cloned().collect();
    let find = |wish: Wish<'_>| wish.find(&names).map(|place| names[place].clone());
    Ok((find(file_wish(options))?, find(caption_wish(options, &names))?))
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
