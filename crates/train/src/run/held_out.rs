//! A look at the rows to validate on before the first step: whether there can be a validation loss at all.

use crate::error::TrainError;
use crate::prepare::Prepared;
use ocelli_data::text::count;
use std::sync::Arc;

/// Rows looked at, at most: reading goes on only while none can be used.
const LOOKED_AT: usize = 256;

/// What a person should know of it.
///
/// # Errors
/// If the data have a split to validate on, and none of its rows can be used. Rows set apart by a ratio may be very few:
/// those are only told of.
pub(super) fn look(data: &Prepared) -> Result<Option<String>, TrainError> {
    let Some((set, rows)) = &data.validation else { return Ok(None) };
    let (mut first, mut pixels) = (None, vec![0; set.picture_bytes()]);
    for row in rows.iter().take(LOOKED_AT) {
        match set.see(set.source_row(row, 0), &mut pixels) {
            Ok(_) => return Ok(None),
            Err(bad) => first.get_or_insert(bad),
        };
    }
    let Some(bad) = first else { return Ok(None) };
    let all = rows.len() <= LOOKED_AT;
    let which = if all { "none of" } else { "none of the first" };
    let rows = count(rows.len().min(LOOKED_AT), "row");
    let found = format!("{which} {rows} to validate on can be used; the first: {bad}");
    if all && !Arc::ptr_eq(set, &data.train) {
        return Err(TrainError::Setting(format!(
            "{found}. Mend them, or name another split with data_config.val_split"
        )));
    }
    let what = if all { "there will be no validation loss" } else { "there may be no validation loss" };
    Ok(Some(format!("{found}: {what}")))
}
