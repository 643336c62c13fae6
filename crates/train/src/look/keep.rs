//! `ocelli data prepare`: decodes all pictures of a source into a file, for training to read them from.

use super::{Kind, Request, guess, kind_is_given};
use crate::error::TrainError;
use crate::keep;
use crate::report::{Event, Reporter};
use crate::sources;
use ocelli_config as config;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A file that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Which split: `to train on`, `to validate on`.
    pub split: &'static str,
    /// The file.
    pub file: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Pictures in it.
    pub pictures: usize,
    /// Seconds that it took; none if the file was there and good.
    pub seconds: Option<f64>,
}

/// Decodes every picture of the source with all cores; the split to train on into `out`, one to validate on beside it.
///
/// # Errors
/// If the source cannot be used, or the file not be written. Pictures that cannot be used are no error: the file says so of them.
pub fn prepare(request: &Request, out: &Path, reporter: &mut dyn Reporter) -> Result<Vec<Kept>, TrainError> {
    let given = kind_is_given(&request.overrides) || config::own_file_sets(&request.named(), super::DATASET);
    let kind = super::kind(&request.source, given);
    if kind == Kind::Pictures || guess(&request.source) == Kind::Dataset(config::Dataset::Shapes) {
        return Err(TrainError::Setting(format!(
            "{}: only pictures of files, with captions, are prepared for training",
            request.source
        )));
    }
    let c = request.config(kind, given)?;
    let opened = sources::open(&c, &AtomicBool::new(false), reporter)?;
    opened.notes.iter().for_each(|line| reporter.event(&Event::Note(line)));
    opened.warnings.iter().for_each(|line| reporter.event(&Event::Warning(line)));
    let mut made = vec![one(&c, "to train on", opened.train, out.into(), reporter)?];
    if let Some(validation) = opened.validation {
        made.push(one(&c, "to validate on", validation, keep::beside(out), reporter)?);
    }
    Ok(made)
}

fn one(
    c: &config::Config,
    split: &'static str,
    source: std::sync::Arc<dyn ocelli_data::source::Source>,
    file: PathBuf,
    reporter: &mut dyn Reporter,
) -> Result<Kept, TrainError> {
    let begin = Instant::now();
    let opened = keep::in_file(c, source, file.clone())?;
    let Some(cache) = opened.cache else {
        return Err(TrainError::Setting(format!(
            "{}: there can be no cache of it",
            opened.source.describe()
        )));
    };
    let (total, there) = (cache.pictures(), cache.is_whole());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut step = |missing: usize| {
        reporter.event(&Event::Looked { done: total - missing, total });
        true
    };
    let whole = cache.complete(threads - 1, &mut step);
    step(0);
    match cache.trouble() {
        Some(found) => Err(TrainError::Setting(found)),
        None if !whole => Err(TrainError::Setting(format!("{} could not be made", file.display()))),
        None => {
            let bytes = std::fs::metadata(&file).map_or(0, |about| about.len());
            let seconds = (!there).then(|| begin.elapsed().as_secs_f64());
            Ok(Kept { split, file, bytes, pictures: total, seconds })
        }
    }
}
