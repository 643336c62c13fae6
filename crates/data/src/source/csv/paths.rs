//! A picture column that holds file names, not pictures: said before training, not once for every row.

use std::path::{Path, PathBuf};

use super::Columns;
use crate::source::SourceError;
use crate::source::base64;
use crate::source::name::{Name, Root, not_fetched};
use crate::source::table::Table;

/// Rows that must all hold file names.
const LOOKED_AT: usize = 3;

/// What reads files that a table names.
const METADATA: &str =
    "metadata.csv beside them (columns file_name and text), and set data_config.dataset=folder";

/// What the picture column holds.
#[derive(Debug)]
pub(super) struct Names {
    /// Rows at the start that hold file names.
    rows: usize,
    first: String,
    root: Root,
    /// Those of the first rows are there.
    there: bool,
    /// The first is an address.
    address: bool,
    /// A name leads out of the table's folder.
    outside: bool,
    /// The folder that all names are in, if all are absolute.
    common: Option<PathBuf>,
}

impl Names {
    /// For a table in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        let (first, common) = (String::new(), None);
        Self { rows: 0, first, root: Root::new(folder), there: true, address: false, outside: false, common }
    }

    /// Looks at the field of `row`; rows come in order. A row of pictures among the first ends it.
    pub(super) fn look(&mut self, row: usize, field: &[u8], folder: &Path) {
        let address = base64::address(field).is_some();
        if self.rows < row.min(LOOKED_AT) || !(address || base64::names_a_file(field)) {
            return;
        }
        let text = String::from_utf8_lossy(field.trim_ascii());
        let path = Path::new(text.as_ref());
        if row < LOOKED_AT {
            self.rows += 1;
            self.there &= folder.join(path).is_file();
        }
        let absolute = path.parent().filter(|_| path.is_absolute());
        if row == 0 {
            self.first = text.clone().into_owned();
            self.address = address;
            self.common = absolute.map(Path::to_owned);
        } else {
            let common = |known: PathBuf| {
                Some(known.ancestors().find(|above| path.starts_with(above))?.to_owned())
                    .filter(|_| absolute.is_some())
            };
            self.common = self.common.take().and_then(common);
        }
        self.outside = self.outside || matches!(self.root.name(&text), Name::Outside(_));
    }

    /// Refuses a table of `rows` rows if the first all hold file names.
    pub(super) fn refuse(&self, table: &Table, columns: Columns, rows: usize) -> Result<(), SourceError> {
        if self.rows == 0 || self.rows < rows.min(LOOKED_AT) {
            return Ok(());
        }
        if self.address {
            let (column, what) = (table.name(columns.image), not_fetched(&self.first));
            let found = format!("the column `{column}` holds no pictures in base64: {what} in {METADATA}");
            return Err(SourceError::not_usable(table.path(), found));
        }
        let there = if self.there { ", which are there" } else { "" };
        let (column, first, advice) = (table.name(columns.image), &self.first, self.advice(table.path()));
        let found = format!(
            "the column `{column}` holds names of files{there} (`{first}`), not pictures in base64: {advice}"
        );
        Err(SourceError::not_usable(table.path(), found))
    }

    fn advice(&self, table: &Path) -> String {
        let folder = table.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let set = |folder: &Path| {
            format!(
                "this column file_name, and set data_config.dataset=folder data_config.data_path={}",
                folder.display()
            )
        };
        match &self.common {
            _ if !self.outside => format!("call the table metadata.csv and {}", set(folder)),
            Some(common) if common.parent().is_some() => {
                let to = common.join("metadata.csv");
                format!("the files are not below the table's folder; copy the table to {} and call {}", to.display(), set(common))
            }
            _ => "not all of the files are below the table's folder; put them and the table, called metadata.csv, \
                  below one folder, write their names relative to it in a column file_name, and set \
                  data_config.dataset=folder and data_config.data_path to that folder"
                .into(),
        }
    }
}
