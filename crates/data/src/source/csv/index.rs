//! What is kept of the one pass over a table: where each record is, and how long its caption.

use std::collections::BTreeMap;
use std::path::Path;

use super::Columns;
use super::paths::Names;
use crate::source::caption::{clean_caption, no_text};
use crate::source::fingerprint::Fingerprint;
use crate::source::repeats::{Finder, told_by_base64};
use crate::source::table::{Pictures, Record, Table, Unheld};
use crate::source::{Repeats, SourceError};

/// What is kept of a row.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// First byte of the record.
    pub(super) offset: u64,
    /// Bytes of the record, its line end included.
    pub(super) length: u64,
    /// Line on which it begins, from 1.
    pub(super) line: u64,
    /// Characters of the cleaned caption, 0 if the row cannot be used.
    pub(super) caption_chars: u32,
}

/// The whole index.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) rows: Vec<Entry>,
    pub(super) repeats: Option<Repeats>,
    /// Rows for which there was no memory, and what was asked for.
    pub(super) unheld: BTreeMap<usize, String>,
    /// Of the pictures' text and the cleaned captions, in order.
    pub(super) fingerprint: u64,
}

impl Index {
    /// Reads `table` from end to end.
    pub(super) fn build(table: &Table, columns: Columns) -> Result<Self, SourceError> {
        let mut fingerprint = Fingerprint::new("csv");
        let folder = table.path().parent().unwrap_or(Path::new("."));
        let (mut rows, mut names, mut repeated) = (Vec::new(), Names::new(folder), Finder::default());
        let mut unheld = BTreeMap::new();
        table.records(Pictures { column: columns.image, base64: true }, |row, record| {
            let record: &Record<'_> = match record {
                Ok(record) => record,
                Err(Unheld { offset, length, line, found }) => {
                    fingerprint.number(length);
                    repeated.look(None);
                    rows.push(Entry { offset, length, line, caption_chars: 0 });
                    unheld.insert(row, found);
                    return Ok(());
                }
            };
            let raw = table.text(&record.fields[columns.caption]);
            let raw = raw.map_err(|found| table.record_error(row, record.line, found))?;
            let caption = clean_caption(&raw);
            let image = &record.fields[columns.image];
            names.look(row, image, folder);
            repeated.look(told_by_base64(image));
            fingerprint.field(image);
            fingerprint.field(caption.as_bytes());
            let chars = if no_text(&caption).is_some() { 0 } else { caption.chars().count() };
            let caption_chars = u32::try_from(chars).unwrap_or(u32::MAX);
            let &Record { offset, length, line, .. } = record;
            rows.push(Entry { offset, length, line, caption_chars });
            Ok(())
        })?;
        names.refuse(table, columns, rows.len())?;
        Ok(Self { rows, repeats: repeated.found(), unheld, fingerprint: fingerprint.value() })
    }
}
