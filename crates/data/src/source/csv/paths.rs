//! A picture column that holds file names, not pictures: said before training, not once for every row.

use std::path::Path;

use super::Columns;
use crate::source::SourceError;
use crate::source::base64;
use crate::source::table::Table;

/// Rows that must all hold file names.
pub(super) const LOOKED_AT: usize = 3;

/// The field as the name of a picture file, if it looks like one.
pub(super) fn file_name(field: &[u8]) -> Option<String> {
    base64::names_a_file(field).then(|| String::from_utf8_lossy(field.trim_ascii()).into_owned())
}

/// Refuses a table whose first rows all hold file names.
pub(super) fn refuse(table: &Table, columns: Columns, names: &[Option<String>]) -> Result<(), SourceError> {
    let Some(names) = names.iter().map(Option::as_deref).collect::<Option<Vec<_>>>() else { return Ok(()) };
    let Some(first) = names.first() else { return Ok(()) };
    let folder = table.path().parent().unwrap_or(Path::new("."));
    let there = if names.iter().all(|name| folder.join(name).is_file()) { ", which are there" } else { "" };
    let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Err(SourceError::not_usable(
        table.path(),
        format!(
            "the column `{}` holds names of files{there} (`{first}`), not pictures in base64: call the table \
             metadata.csv and this column file_name, and set data_config.dataset=folder data_config.data_path={}",
            table.name(columns.image),
            shown.display()
        ),
    ))
}
