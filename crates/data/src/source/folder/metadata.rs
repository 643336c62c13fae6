//! Metadata of a folder, `metadata.csv` and `metadata.jsonl`: file names and captions. Rows of one file are one picture with several
//! captions, wherever they stand.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::items::{Item, Items};
use super::layout::Scope;
use super::lines;
use crate::source::SourceError;
use crate::source::TextOptions;
use crate::source::WEB_ADDRESS;
use crate::source::name::{Name, Root, is_address, not_fetched};
use crate::source::table::{Pictures, Table, Wish};

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
        lines::read(path, options, &mut rows)?
    };
    let mut items = Items { notes: vec![note], ..Items::default() };
    for (item, captions) in rows.pictures {
        match captions {
            Ok(_) if item.name.as_os_str().is_empty() => {
                items.captions.push_bad("empty_image", NAMELESS.into());
            }
            Ok(captions) => items.captions.push(captions),
            Err((reason, found)) => items.captions.push_bad(reason, found),
        }
        items.pictures.push(item);
    }
    Ok(items)
}

/// What is wrong with a row without a file's name.
const NAMELESS: &str = "the row names no picture: its file name is missing or empty";

/// The captions of a picture, or the reason why it has none and what was found.
type Held = Result<Vec<String>, (&'static str, String)>;

/// Pictures in the order in which they are first named; a row that names none, or is bad, stands alone.
pub(super) struct Rows<'a> {
    root: Root,
    under: Option<&'a str>,
    pictures: Vec<(Item, Held)>,
    places: HashMap<PathBuf, usize>,
}

impl Rows<'_> {
    /// Adds a row: the name of a picture as it is written, and its captions.
    pub(super) fn push(&mut self, raw: &str, line: u64, captions: Vec<String>) {
        if is_address(raw) {
            return self.bad("", line, (WEB_ADDRESS, not_fetched(raw)));
        }
        let item = self.item(raw, line);
        if self.is_elsewhere(&item) {
            return;
        }
        match self.places.get(&item.name) {
            _ if item.name.as_os_str().is_empty() => self.pictures.push((item, Ok(captions))),
            Some(&place) => {
                if let Ok(held) = &mut self.pictures[place].1 {
                    held.extend(captions);
                }
            }
            None => {
                self.places.insert(item.name.clone(), self.pictures.len());
                self.pictures.push((item, Ok(captions)));
            }
        }
    }

    /// Adds a row that cannot be used: the reason, and what was found.
    pub(super) fn bad(&mut self, raw: &str, line: u64, bad: (&'static str, String)) {
        let item = self.item(raw, line);
        if item.name.as_os_str().is_empty() || !self.is_elsewhere(&item) {
            self.pictures.push((item, Err(bad)));
        }
    }

    fn item(&self, raw: &str, line: u64) -> Item {
        let (name, outside) = match self.root.name(raw) {
            Name::Inside(name) => (name, false),
            Name::Outside(name) => (name, true),
        };
        Item { name, outside, line: Some(line) }
    }

    /// True if the row belongs to another split.
    fn is_elsewhere(&self, item: &Item) -> bool {
        self.under.is_some_and(|under| !item.outside && !item.name.starts_with(under))
    }
}

/// The column with file names. The published presets name a column for base64, which no metadata have.
pub(super) fn file_wish(options: &TextOptions) -> Wish<'_> {
    let given = options.image_col.as_deref().filter(|given| *given != "b64string_images");
    Wish { given, usual: &["file_name"], key: "data_config.image_col" }
}

/// The column with captions. `caption` may come from a published preset, and be called otherwise here.
pub(super) fn caption_wish<'a>(options: &'a TextOptions, names: &[String]) -> Wish<'a> {
    let given = options.caption_col.as_deref();
    Wish::caption(given.filter(|given| *given != "caption" || names.iter().any(|n| n == given)))
}

pub(super) fn used(file: &str, caption: &str) -> String {
    format!("columns: `{file}` holds file names, `{caption}` captions")
}

fn table(path: &Path, options: &TextOptions, rows: &mut Rows<'_>) -> Result<String, SourceError> {
    let table = Table::open(path, options)?;
    let file = table.column(&file_wish(options))?;
    let caption = table.column(&caption_wish(options, table.names()))?;
    table.records(Pictures { column: file, base64: false }, |row, record| {
        let record = record.map_err(|long| table.record_error(row, long.line, long.found))?;
        let text = |column: usize| {
            let text = table.text(&record.fields[column]).map(std::borrow::Cow::into_owned);
            text.map_err(|found| table.record_error(row, record.line, found))
        };
        rows.push(&text(file)?, record.line, vec![text(caption)?]);
        Ok(())
    })?;
    Ok(used(table.name(file), table.name(caption)))
}
