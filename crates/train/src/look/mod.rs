//! Looking at data without training: what could be used and what not, and what the model would see of a row.

mod check;
mod guess;
mod show;

pub use check::{Bad, Captions, Checked, LISTED, Part, check};
pub use show::{Shown, show};

use crate::error::TrainError;
use crate::prepare;
use crate::report::Reporter;
use crate::settings;
use crate::sources;
use guess::{Kind, guess};
use ocelli_config::{self as config, Config, Unknown};
use ocelli_data::batch::{Dataset, Seen, read_sample};
use ocelli_data::scan::{ContentStats, UnknownCharacter};
use ocelli_data::source::pictures::Pictures;
use ocelli_data::source::{BadSample, Source};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A source to look at.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A file, a folder, a pattern, `shapes`, or a data set of the hub.
    pub source: String,
    /// A configuration that says how it is read; without one, the default one. The kind of the source is told from
    /// its contents, unless an override says it.
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

    /// A row as training would read it.
    fn see(&self, row: usize) -> Result<Seen, BadSample> {
        match self {
            Self::Captioned(set) => set.see(row),
            Self::Pictures(pictures, size) => {
                let sample = read_sample(pictures, row, *size)?;
                Ok(Seen { sample, ids: Vec::new(), cut: false, replaced: 0 })
            }
        }
    }
}

impl Request {
    fn open(&self, reporter: &mut dyn Reporter) -> Result<Opened, TrainError> {
        let kind = kind(&self.source, &self.overrides);
        let config = self.config(kind)?;
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
        let parts = [Some(sources.train), sources.validation].into_iter().flatten().map(set);
        let parts = parts.map(|set| set.map(Rows::Captioned)).collect::<Result<_, _>>()?;
        Ok(Opened { config, parts, notes: sources.notes, captions: Some(captions) })
    }

    fn config(&self, kind: Kind) -> Result<Config, TrainError> {
        let overrides = named(kind, &self.source, &self.overrides);
        let (name, path) = (self.config_name.clone(), self.config_path.clone());
        let resolved = config::load(&config::Request { name, path, overrides })?;
        Ok(resolved.for_training()?.clone())
    }
}

/// The overrides by which a configuration reads `source`, and then those `given`; none for pictures without captions.
pub fn overrides(source: &str, given: &[String]) -> Option<Vec<String>> {
    match kind(source, given) {
        Kind::Pictures => None,
        kind => Some(named(kind, source, given)),
    }
}

fn named(kind: Kind, source: &str, given: &[String]) -> Vec<String> {
    let mut overrides = Vec::new();
    if let (Kind::Dataset(dataset), false) = (kind, kind_is_given(given)) {
        overrides.push(format!("data_config.dataset={dataset}"));
    }
    if !matches!(kind, Kind::Pictures | Kind::Dataset(config::Dataset::Shapes)) {
        overrides.push(config::literal("data_config.data_path", source));
    }
    overrides.extend(given.iter().cloned());
    overrides
}

/// The kind asked for, or what the source looks like.
fn kind(source: &str, given: &[String]) -> Kind {
    // Which kind it is then, is the override's to say.
    if kind_is_given(given) { Kind::Dataset(config::Dataset::Csv) } else { guess(source) }
}

fn kind_is_given(overrides: &[String]) -> bool {
    overrides.iter().any(|o| o.trim_start_matches('+').starts_with("data_config.dataset="))
}
