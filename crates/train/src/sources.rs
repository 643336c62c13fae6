//! From configuration keys to opened sources: the one place that knows which kind of source reads what.

use crate::error::TrainError;
use crate::report::{Event, Reporter};
use crate::settings;
use ocelli_config::{self as config, CaptionChoice, Config, Dataset};
use ocelli_data::hub::{self, Place, Told};
use ocelli_data::source::csv::Csv;
use ocelli_data::source::folder::Folder;
use ocelli_data::source::parquet::{Parquet, ParquetOptions};
use ocelli_data::source::shapes::{Shapes, Split};
use ocelli_data::source::tar::{Tar, TarOptions};
use ocelli_data::source::{Encoding, Quoting, Source, SplitNames, TextOptions, first_captions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The opened sources of a configuration.
pub struct Sources {
    /// To train on.
    pub train: Arc<dyn Source>,
    /// To validate on, where that is a source of its own; else rows of `train` are set apart.
    pub validation: Option<Arc<dyn Source>>,
    /// What a person should know, a line each.
    pub notes: Vec<String>,
    /// What is left out, a line each.
    pub warnings: Vec<String>,
}

/// What is said of how a source is divided.
#[derive(Default)]
struct Lines {
    notes: Vec<String>,
    warnings: Vec<String>,
}

/// Opens what `data_config` names. What must be fetched before is told to `reporter`, and ends early once `stop` is set.
///
/// # Errors
/// If it cannot be used as a whole; single bad samples are no error.
pub fn open(c: &Config, stop: &AtomicBool, reporter: &mut dyn Reporter) -> Result<Sources, TrainError> {
    let path = Path::new(c.data.data_path.as_deref().unwrap_or_default());
    match c.data.dataset {
        Dataset::Csv | Dataset::Tsv => {
            let csv = Csv::open(path, &text_options(c)?)?;
            Ok(Sources::new(c, Arc::new(csv), None, Lines::default()))
        }
        Dataset::Folder => {
            let splits = Folder::open(path, &split_names(c), &text_options(c)?)?;
            let validation = splits.validation.map(|v| Arc::new(v) as Arc<dyn Source>);
            let lines = Lines { notes: Vec::from_iter(splits.note), warnings: splits.warnings };
            Ok(Sources::new(c, Arc::new(splits.train), validation, lines))
        }
        Dataset::Parquet => parquet(c, path),
        Dataset::WebDataset => webdataset(c, path),
        Dataset::Coco => coco(c, stop, reporter),
        Dataset::Shapes => Ok(shapes(c)),
    }
}

impl Sources {
    /// Identifies the rows to train on, as snapshots keep it.
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", self.train.fingerprint())
    }

    /// Sources as they are, with the captions that the configuration chooses.
    fn new(c: &Config, train: Arc<dyn Source>, held_out: Option<Arc<dyn Source>>, more: Lines) -> Self {
        let choose = |source| match c.data.caption_choice {
            CaptionChoice::First => first_captions(source),
            CaptionChoice::Random | CaptionChoice::All => source,
        };
        let (train, validation) = (choose(train), held_out.map(choose));
        let mut notes = vec![format!("data: {}", train.describe())];
        notes.extend(train.notes());
        notes.extend(more.notes);
        if let Some(validation) = &validation {
            notes.push(format!("validation data: {}", validation.describe()));
            notes.extend(validation.notes());
        }
        Self { train, validation, notes, warnings: more.warnings }
    }
}

fn parquet(c: &Config, path: &Path) -> Result<Sources, TrainError> {
    let splits = Parquet::open(path, &split_names(c), &parquet_options(c))?;
    let validation = splits.validation.map(|v| Arc::new(v) as Arc<dyn Source>);
    let lines = Lines { notes: splits.notes, warnings: splits.warnings };
    Ok(Sources::new(c, Arc::new(splits.train), validation, lines))
}

fn webdataset(c: &Config, path: &Path) -> Result<Sources, TrainError> {
    let options = TarOptions { caption_col: c.data.caption_col.clone(), decode: settings::decoding(c) };
    let splits = Tar::open(path, &split_names(c), &options)?;
    let validation = splits.validation.map(|v| Arc::new(v) as Arc<dyn Source>);
    let lines = Lines { notes: splits.notes, warnings: splits.warnings };
    Ok(Sources::new(c, Arc::new(splits.train), validation, lines))
}

/// A data set of the hub, or a copy of one on this machine.
fn coco(c: &Config, stop: &AtomicBool, reporter: &mut dyn Reporter) -> Result<Sources, TrainError> {
    let given = c.data.data_path.as_deref().unwrap_or_default();
    let set = match hub::place(given, c.data.revision.as_deref())? {
        Place::Local(path) => return parquet(c, &path),
        Place::Hub(set) => set,
    };
    let fetched = hub::fetch(&set, &split_names(c), &hub::Settings::from_env()?, stop, &mut |told| {
        reporter.event(&match told {
            Told::Note(line) => Event::Note(line),
            Told::Warning(line) => Event::Warning(line),
            Told::Waiting(line) => Event::Waiting(line),
            Told::Progress { name, done, total } => Event::Fetching { name, done, total },
            Told::Done => Event::Fetched,
        });
    })?;
    let open = |paths: Vec<PathBuf>, split: &str| {
        let shown = format!("{} at {:.8}, {split}", set.id(), fetched.commit);
        Parquet::open_files(paths, shown.into(), &parquet_options(c))
    };
    let train = open(fetched.train, "to train on")?;
    let validation = match fetched.validation {
        paths if paths.is_empty() => None,
        paths => Some(Arc::new(open(paths, "to validate on")?) as Arc<dyn Source>),
    };
    let lines = Lines { notes: Vec::from_iter(fetched.note), warnings: fetched.warnings };
    Ok(Sources::new(c, Arc::new(train), validation, lines))
}

fn parquet_options(c: &Config) -> ParquetOptions {
    ParquetOptions {
        image_col: c.data.image_col.clone(),
        caption_col: c.data.caption_col.clone(),
        decode: settings::decoding(c),
    }
}

fn split_names(c: &Config) -> SplitNames {
    SplitNames { train: c.data.train_split.clone(), validation: c.data.val_split.clone() }
}

fn text_options(c: &Config) -> Result<TextOptions, TrainError> {
    Ok(TextOptions {
        image_col: c.data.image_col.clone(),
        caption_col: c.data.caption_col.clone(),
        delimiter: c.data.divider().map_err(TrainError::Setting)?,
        quoting: match c.data.quoting {
            config::Quoting::Minimal => Quoting::Minimal,
            config::Quoting::None => Quoting::None,
        },
        encoding: Encoding::named(&c.data.encoding).map_err(TrainError::Setting)?,
        decode: settings::decoding(c),
    })
}

fn shapes(c: &Config) -> Sources {
    let drawn = |split, len| Arc::new(Shapes::new(c.trainer.seed, split, len)) as Arc<dyn Source>;
    let train = drawn(Split::Train, c.data.train_samples.unwrap_or(u32::MAX as usize));
    let validation = (c.data.val_samples > 0).then(|| drawn(Split::Validation, c.data.val_samples));
    let notes = vec![format!("data: {}", train.describe())];
    Sources { train, validation, notes, warnings: Vec::new() }
}
