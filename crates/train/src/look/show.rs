//! One row as the model sees it.

use super::{Opened, Request};
use crate::error::TrainError;
use crate::report::Reporter;
use ocelli_config::CaptionChoice;
use ocelli_data::batch::Seen;

/// A row of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// What it is a row of.
    pub source: String,
    /// Rows of that.
    pub rows: usize,
    /// Side of the scaled picture in pixels.
    pub side: usize,
    /// The scaled picture, RGB, row by row.
    pub pixels: Vec<u8>,
    /// The row; without ids and with an empty caption for a picture without one.
    pub seen: Seen,
}

/// Reads row `index` of a source (of its training split, where it has splits): each caption of a picture is a row,
/// whichever of them training takes, as everywhere where rows are named.
///
/// # Errors
/// If the source cannot be used, has no such row, or the row is bad.
pub fn show(request: &Request, index: usize, reporter: &mut dyn Reporter) -> Result<Shown, TrainError> {
    let Opened { config, parts, .. } = request.open(Some(CaptionChoice::All), reporter)?;
    let (source, rows) = match parts.first() {
        Some(part) => (part.source().describe(), part.source().len()),
        None => (request.source.clone(), 0),
    };
    match parts.first() {
        Some(part) if index < rows => {
            let mut pixels = vec![0; part.picture_bytes()];
            let seen = part.see(index, &mut pixels).map_err(TrainError::Sample)?;
            Ok(Shown { source, rows, side: config.model.img_size, pixels, seen })
        }
        _ => {
            let last = rows.saturating_sub(1);
            Err(TrainError::Setting(format!("--index {index}: {source} has the rows 0 to {last}")))
        }
    }
}
