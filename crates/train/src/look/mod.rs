//! Looking at data without training: what could be used and what not, and what the model would see of a row.

mod check;
mod guess;
mod keep;
mod pace;
mod show;

pub use check::{Bad, Captions, Checked, LISTED, Part, check};
pub use keep::{Kept, prepare};
pub use pace::{Epoch, Pace, ROWS, pace};
pub use show::{Shown, show};

use crate::error::TrainError;
use crate::prepare;
use crate::report::Reporter;
use crate::settings;
use crate::sources;
use guess::{Kind, guess};
use ocelli_config::{self as config, CaptionChoice, Config, Unknown};
use ocelli_data::batch::{Dataset, Seen, read_sample};
use ocelli_data::scan::{ContentStats, UnknownCharacter};
use ocelli_data::source::pictures::Pictures;
use ocelli_data::source::{BadSample, Source};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The key that says the kind of a source.
const DATASET: &str = "data_config.dataset";

/// A source to look at.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A file, a folder, a pattern, `shapes`, or a data set of the hub.
    pub source: String,
    /// A configuration that says how it is read; without one, the default one. The kind of the source is told from
    /// its contents, unless an override or a file of the user's own says it.
    pub config_name: Option<String>,
    /// A folder that is searched for it first.
    pub config_path: Option<PathBuf>,
    /// `key=value`, applied last.
    pub overrides: Vec<String>,
}

/// A source opened to be looked at.
struct Opened {
    config: Config,
    /// To train on, and to validate on where that is a split of its own.
    parts: Vec<Rows>,
    notes: Vec<String>,
    /// What the captions are like; none for pictures without captions.
    captions: Option<Scanned>,
}

/// What was found in the captions.
struct Scanned {
    stats: ContentStats,
    /// Longer captions are cut.
    limit: usize,
    /// Characters that the vocabulary file lacks, most frequent first.
    unknown: Vec<UnknownCharacter>,
    /// Why training would refuse them.
    refusal: Option<String>,
}

/// The rows of a split.
enum Rows {
    Captioned(Dataset),
    Pictures(Pictures, usize),
}

impl Rows {
    fn source(&self) -> &dyn Source {
        match self {
            Self::Captioned(set) => set.source(),
            Self::Pictures(pictures, _) => pictures,
        }
    }

    /// Bytes of a scaled picture.
    fn picture_bytes(&self) -> usize {
        match self {
            Self::Captioned(set) => set.picture_bytes(),
            Self::Pictures(_, size) => size * size * 3,
        }
    }

    /// A row as training would read it, its picture into `pixels`.
    fn see(&self, row: usize, pixels: &mut [u8]) -> Result<Seen, BadSample> {
        match self {
            Self::Captioned(set) => set.see(row, pixels),
            Self::Pictures(pictures, size) => {
                let sample = read_sample(pictures, row, *size, pixels)?;
                Ok(Seen { sample, ids: Vec::new(), cut: false, replaced: 0 })
            }
        }
    }
}

impl Request {
    /// Opens the source, with other captions than those of the configuration where `choice` says so.
    fn open(&self, choice: Option<CaptionChoice>, reporter: &mut dyn Reporter) -> Result<Opened, TrainError> {
        let given = kind_is_given(&self.overrides) || config::own_file_sets(&self.named(), DATASET);
        let kind = kind(&self.source, given);
        let mut config = self.config(kind, given)?;
        config.data.caption_choice = choice.unwrap_or(config.data.caption_choice);
        if kind == Kind::Pictures {
            let pictures = Pictures::open(Path::new(&self.source), settings::decoding(&config))?;
            let notes = pictures.notes();
            let parts = vec![Rows::Pictures(pictures, config.model.img_size)];
            return Ok(Opened { config, parts, notes, captions: None });
        }
        prepare::look_at_vocabulary(&config)?;
        let sources = sources::open(&config, &AtomicBool::new(false), reporter)?;
        let mut stats = ContentStats::scan(&*sources.train);
        if let Some(validation) = &sources.validation {
            stats.merge(&ContentStats::scan(&**validation));
        }
        let loss = settings::loss_mode(&config);
        // Unknown characters are told of together: they make no single row bad.
        let mut lenient = config.clone();
        lenient.data.unknown = Unknown::Replace;
        let tokenizer = prepare::tokenizer(&lenient, &stats, loss)?;
        let refused = prepare::refuse_unknown(&config, &stats, &*tokenizer, prepare::LEARN);
        let lengths = prepare::lengths(&config, &stats)?;
        let captions = Scanned {
            limit: lengths.limit(),
            unknown: stats.unknown(&*tokenizer),
            refusal: refused.err().map(|e| e.to_string()),
            stats,
        };
        let set =
            |source| Dataset::new(source, tokenizer.clone(), config.model.img_size, loss, lengths.clone());
        let unknown = prepare::not_looked_for(&config, &sources);
        let parts = [Some(sources.train), sources.validation].into_iter().flatten().map(set);
        let parts = parts.map(|set| set.map(Rows::Captioned)).collect::<Result<_, _>>()?;
        let mut notes = sources.notes;
        notes.extend(unknown);
        notes.extend(sources.warnings.iter().map(|line| format!("warning: {line}")));
        Ok(Opened { config, parts, notes, captions: Some(captions) })
    }

    fn named(&self) -> config::Request {
        let (name, path) = (self.config_name.clone(), self.config_path.clone());
        config::Request { name, path, overrides: Vec::new() }
    }

    fn config(&self, kind: Kind, given: bool) -> Result<Config, TrainError> {
        let overrides = named(kind, given, &self.source, &self.overrides);
        let resolved = config::load(&config::Request { overrides, ..self.named() })?;
        Ok(resolved.for_training()?.clone())
    }
}

/// The overrides by which a configuration reads `source`, and then those `given`; none for pictures without captions.
pub fn overrides(source: &str, given: &[String]) -> Option<Vec<String>> {
    let is_given = kind_is_given(given);
    match kind(source, is_given) {
        Kind::Pictures => None,
        kind => Some(named(kind, is_given, source, given)),
    }
}

/// `given`, and before them what `source` is. If its kind `is_given` elsewhere, that is left as it is.
fn named(kind: Kind, is_given: bool, source: &str, given: &[String]) -> Vec<String> {
    let mut overrides = Vec::new();
    if let (Kind::Dataset(dataset), false) = (kind, is_given) {
        overrides.push(format!("data_config.dataset={dataset}"));
    }
    if !matches!(kind, Kind::Pictures | Kind::Dataset(config::Dataset::Shapes)) {
        overrides.push(config::literal("data_config.data_path", source));
    }
    overrides.extend(given.iter().cloned());
    overrides
}

/// What the source looks like; if its kind is given, any kind with captions.
fn kind(source: &str, given: bool) -> Kind {
    match guess(source) {
        // Which kind it is then, is said elsewhere. Drawn pictures have no path.
        kind if given && kind != Kind::Dataset(config::Dataset::Shapes) => {
            Kind::Dataset(config::Dataset::Csv)
        }
        kind => kind,
    }
}

fn kind_is_given(overrides: &[String]) -> bool {
    let key = |o: &String| o.trim_start_matches('+').split('=').next().is_some_and(|key| key == DATASET);
    overrides.iter().any(key)
}
