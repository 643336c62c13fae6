//! Values of one leaf column of one row group, row by row.

use std::sync::Arc;

use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::SerializedPageReader;

use super::blocks::Tap;
use super::filled::Filled;
use super::guard::Guard;

/// Which values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Row group.
    pub(super) group: usize,
    /// Number of the leaf column.
    pub(super) leaf: usize,
    /// First row, counted in the group.
    pub(super) first: usize,
    pub(super) rows: usize,
}

/// The part as its pages, by what their headers say: each can be read although another is damaged.
pub(super) fn pages(tap: &Arc<Tap>, metadata: &ParquetMetaData, part: Part) -> Result<Vec<Part>, String> {
    let failed = |e: ParquetError| e.to_string();
    let group = metadata.row_group(part.group);
    let rows = usize::try_from(group.num_rows()).map_err(|e| e.to_string())?;
    let mut reader =
        SerializedPageReader::new(tap.clone(), group.column(part.leaf), rows, None).map_err(failed)?;
    let (mut pages, mut at, end) = (Vec::new(), 0_usize, part.first + part.rows);
    while let Some(page) = reader.peek_next_page().map_err(failed)? {
        reader.skip_next_page().map_err(failed)?;
        let rows = page.num_rows.or(page.num_levels).filter(|_| !page.is_dict).unwrap_or(0);
        let (from, to) = (at.max(part.first), at.saturating_add(rows).min(end));
        if from < to {
            pages.push(Part { first: from, rows: to - from, ..part });
        }
        at = at.saturating_add(rows);
    }
    Ok(pages)
}

/// Hands the values of a part to `each`, with the row counted from the part's first. A row without a value is
/// not handed out, one of a list several times.
pub(super) fn values(
    tap: &Arc<Tap>,
    metadata: &ParquetMetaData,
    part: Part,
    mut each: impl FnMut(usize, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |e: ParquetError| e.to_string();
    let column = metadata.row_group(part.group).column(part.leaf);
    let locations = metadata.page_index_for_row_group(part.group).page_locations(part.leaf).cloned();
    let rows = usize::try_from(metadata.row_group(part.group).num_rows()).map_err(|e| e.to_string())?;
    let pages = SerializedPageReader::new(tap.clone(), column, rows, locations).map_err(failed)?;
    let (flat, full) = (column.column_descr().max_rep_level() == 0, column.column_descr().max_def_level());
    let ColumnReader::ByteArrayColumnReader(mut reader) =
        get_column_reader(column.column_descr_ptr(), Box::new(Guard::new(Filled(pages), column, tap)))
    else {
        return Err("is no column of bytes".into());
    };
    if reader.skip_records(part.first).map_err(failed)? != part.first {
        return Err(format!("ends before row {}", part.first));
    }
    let (mut defined, mut repeated, mut found) =
        (Vec::<i16>::new(), Vec::<i16>::new(), Vec::<ByteArray>::new());
    // One row at a time: a value is then part of the page that was read last.
    for row in 0..part.rows {
        defined.clear();
        repeated.clear();
        found.clear();
        let (records, ..) = reader
            .read_records(1, Some(&mut defined), (!flat).then_some(&mut repeated), &mut found)
            .map_err(failed)?;
        if records != 1 {
            return Err(format!(
                "ends after {} rows instead of {}",
                part.first + row,
                part.first + part.rows
            ));
        }
        debug_assert!(full > 0 || found.len() == 1);
        for value in &found {
            each(row, value.data())?;
        }
    }
    Ok(())
}
