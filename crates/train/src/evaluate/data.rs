//! The rows to evaluate: those that the run validated on, or other data.

use crate::error::TrainError;
use crate::keep;
use crate::prepare;
use crate::report::{Event, Reporter};
use crate::sources;
use crate::trained::Saved;
use ocelli_data::batch::Dataset;
use ocelli_data::source::SourceError;
use ocelli_data::split::Rows;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A column that is looked for because the run's data, of another kind, had it: says so.
fn other_kind(saved: &Saved, error: TrainError) -> TrainError {
    let (data, run) = (&saved.config.data, saved.trained_on);
    if !matches!(error, TrainError::Source(SourceError::Column { .. })) || data.dataset == run {
        return error;
    }
    let columns = [("image_col", &data.image_col), ("caption_col", &data.caption_col)];
    let shown = columns.map(|(key, name)| format!("data_config.{key}={}", name.as_deref().unwrap_or("null")));
    TrainError::Setting(format!(
        "{error}\nThe run was on dataset {run} with {}; this source is read as dataset {}. Give its own columns beside it \
         (null takes those of the usual names)",
        shown.join(" "),
        data.dataset
    ))
}

/// Opens them. Of other data all rows are evaluated, unless they have a split to validate on.
pub(super) fn open(
    saved: &Saved,
    other_data: bool,
    interrupted: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<(Arc<Dataset>, Rows), TrainError> {
    let c = &saved.config;
    let mut sources = sources::open(c, interrupted, reporter).map_err(|e| other_kind(saved, e))?;
    keep::keep(c, &mut sources, false)?;
    if other_data {
        sources.notes.iter().for_each(|line| reporter.event(&Event::Note(line)));
        sources.warnings.iter().for_each(|line| reporter.event(&Event::Warning(line)));
    }
    let own_split = sources.validation.is_some();
    let data = prepare::prepare(c, sources, Some(saved.tokenizer.clone()))?;
    let known = data.fingerprint == saved.meta().source_fingerprint;
    match (other_data, known, own_split) {
        (false, false, _) => reporter.event(&Event::Warning(
            "the data changed since the snapshot was saved: rows that the model learnt may be among those evaluated",
        )),
        (true, true, false) => reporter.event(&Event::Warning(
            "the model was trained on rows of these very data. Without a SOURCE those that it never saw are evaluated",
        )),
        _ => {}
    }
    match data.validation {
        Some(validation) if own_split || !other_data => Ok(validation),
        _ if other_data => {
            let rows = Rows::all(data.train.len());
            Ok((data.train, rows))
        }
        _ => Err(TrainError::Setting(
            "the run kept no rows to validate on (data_config.train_split_ratio): name a \
             SOURCE to evaluate on"
                .into(),
        )),
    }
}
