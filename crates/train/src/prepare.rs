//! Before the first step: the source, its captions, the vocabulary, the split, the padded lengths.

use crate::error::TrainError;
use crate::settings;
use crate::sources::Sources;
use ocelli_config::{self as config, CaptionChoice, Config};
use ocelli_data::batch::{Dataset, DatasetError, Lengths, LossMode};
use ocelli_data::scan::{ContentStats, UnknownCharacter};
use ocelli_data::source::Source;
use ocelli_data::split::{Rows, split, split_pictures, split_repeated};
use ocelli_data::text::count as plural;
use ocelli_data::tokenizer::{CharTokenizer, Tokenizer, UnknownPolicy};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Unknown characters listed in an error.
const LISTED: usize = 20;

/// What to do about unknown characters.
pub(crate) const LEARN: &str = "Add them to it, learn the vocabulary from the captions (data_config.vocab_path=auto), or \
                                set data_config.unknown=replace";
/// The same where the vocabulary is a snapshot's.
const KNOWN_ALONE: &str = "The vocabulary is that of the snapshot; set data_config.unknown=replace, and they are replaced \
                           and counted";

/// Data ready to train on.
pub struct Prepared {
    /// Rows to train on.
    pub train: Arc<Dataset>,
    /// Which rows of it.
    pub train_rows: Rows,
    /// Rows to judge by.
    pub validation: Option<(Arc<Dataset>, Rows)>,
    /// The vocabulary.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// Identifies the training source.
    pub fingerprint: String,
    /// The commonest first character of the captions: where the published loss must be prompted with it, since
    /// it never teaches the first character.
    pub first_character: Option<char>,
    /// What a person should know, a line each.
    pub notes: Vec<String>,
    /// What is left out, a line each.
    pub warnings: Vec<String>,
}

/// Makes opened data ready. `saved` is the vocabulary of the snapshot that the run goes on from.
///
/// # Errors
/// If its captions do not go with the vocabulary.
pub fn prepare(
    c: &Config,
    sources: Sources,
    saved: Option<Arc<dyn Tokenizer>>,
) -> Result<Prepared, TrainError> {
    let fingerprint = sources.fingerprint();
    let unknown = not_looked_for(c, &sources);
    let Sources { train, validation, mut notes, warnings } = sources;
    let mut stats = ContentStats::scan(&*train);
    if let Some(validation) = &validation {
        stats.merge(&ContentStats::scan(&**validation));
    }
    let loss = settings::loss_mode(c);
    let advice = if saved.is_some() { KNOWN_ALONE } else { LEARN };
    let tokenizer = match saved {
        Some(tokenizer) => tokenizer,
        None => tokenizer(c, &stats, loss)?,
    };
    refuse_unknown(c, &stats, &*tokenizer, advice)?;
    let lengths = lengths(c, &stats)?;
    describe_captions(&stats, &lengths, &mut notes);
    let dataset = |source: &Arc<dyn Source>| {
        let set = Dataset::new(source.clone(), tokenizer.clone(), c.model.img_size, loss, lengths.clone())?;
        let random = c.data.caption_choice == CaptionChoice::Random;
        let set = if random { set.with_random_captions(c.trainer.seed) } else { set };
        Ok::<_, DatasetError>(Arc::new(set))
    };
    let (source, train) = (train.clone(), dataset(&train)?);
    let (train_rows, validation) = match &validation {
        Some(held_out) => {
            let held_out = dataset(held_out)?;
            let rows = Rows::all(held_out.len());
            (Rows::all(train.len()), Some((held_out, rows)))
        }
        None => {
            let (ratio, seed) = (c.data.train_split_ratio, c.trainer.seed);
            let parts = match (source.repeats(), source.groups()) {
                (Some(repeats), _) => {
                    // A row may be any of a picture's captions.
                    let of_row =
                        |row| repeats.of_row().get(train.source_row(row, 0)).copied().unwrap_or_default();
                    split_repeated(&(0..train.len()).map(of_row).collect::<Vec<_>>(), ratio, seed)?
                }
                (None, Some(groups)) if train.len() == groups.rows() => split_pictures(groups, ratio, seed)?,
                _ => split(train.len(), ratio, seed)?,
            };
            notes.extend(parts.note);
            (parts.train, (!parts.validation.is_empty()).then(|| (train.clone(), parts.validation)))
        }
    };
    let validated = validation.as_ref().map_or(0, |(_, rows)| rows.len());
    notes.push(format!("rows: {} to train on, {validated} to validate on", count(train_rows.len())));
    notes.extend(unknown);
    let first_character = first_character(&*source);
    Ok(Prepared { train, train_rows, validation, tokenizer, fingerprint, first_character, notes, warnings })
}

/// Which repeats of pictures could be on both sides, since nobody looked for them; none if there is one side alone.
pub(crate) fn not_looked_for(c: &Config, sources: &Sources) -> Option<String> {
    let unknown = sources.train.unknown_repeats()?;
    if sources.validation.is_some() {
        return Some(
            "not looked for: pictures that are among those to train on and among those to validate on".into(),
        );
    }
    (c.data.train_split_ratio < 1.0)
        .then(|| format!("not looked for, and so perhaps on both sides of the split: {unknown}"))
}

/// A number of rows; sets drawn without end have a length no one will reach.
fn count(rows: usize) -> String {
    if rows >= u32::MAX as usize { "any number".into() } else { rows.to_string() }
}

/// Reads the vocabulary file for a look, if data may have to be fetched, which takes long.
///
/// # Errors
/// If it is missing or no vocabulary.
pub(crate) fn look_at_vocabulary(c: &Config) -> Result<(), TrainError> {
    if let (config::Dataset::Coco, Some(path)) = (c.data.dataset, c.data.vocab_file()) {
        let end = settings::loss_mode(c) == LossMode::Masked;
        CharTokenizer::from_file(path, end, settings::unknown(c))?;
    }
    Ok(())
}

/// The vocabulary that `vocab_path` names, or learnt.
pub(crate) fn tokenizer(
    c: &Config,
    stats: &ContentStats,
    loss: LossMode,
) -> Result<Arc<dyn Tokenizer>, TrainError> {
    let (end, unknown) = (loss == LossMode::Masked, settings::unknown(c));
    Ok(Arc::new(match c.data.vocab_file() {
        Some(path) => CharTokenizer::from_file(path, end, unknown)?,
        None => CharTokenizer::learn(stats.characters.keys().copied(), end, unknown)?,
    }))
}

/// Lists the characters that the vocabulary lacks, all at once and before anything is trained.
pub(crate) fn refuse_unknown(
    c: &Config,
    stats: &ContentStats,
    tokenizer: &dyn Tokenizer,
    advice: &str,
) -> Result<(), TrainError> {
    let unknown = stats.unknown(tokenizer);
    if unknown.is_empty() || settings::unknown(c) == UnknownPolicy::Replace {
        return Ok(());
    }
    let line = |u: &UnknownCharacter| {
        let (code, used) = (u32::from(u.character), u.used);
        format!(
            "\n  {:?} (U+{code:04X}): {}, first in row {}{}",
            u.character,
            plural(used.count, "time"),
            used.first_row,
            if used.source == 0 { "" } else { " of the validation data" }
        )
    };
    let listed: String = unknown.iter().take(LISTED).map(line).collect();
    let more = unknown.len().saturating_sub(LISTED);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let vocabulary = c.data.vocab_file().map_or("the vocabulary".into(), |path| path.display().to_string());
    Err(TrainError::UnknownCharacters(format!(
        "not in {vocabulary}: {} of the captions (rows count from 0){listed}{more}\n{advice}",
        plural(unknown.len(), "character")
    )))
}

/// The padded lengths; no text is longer than the position table allows.
pub(crate) fn lengths(c: &Config, stats: &ContentStats) -> Result<Lengths, TrainError> {
    let room = c.model.max_positions - 1;
    let asked = c.data.max_seq_length.map(|n| n.min(room));
    let lengths = Lengths::plan(settings::padding(c), asked, stats)?;
    Ok(if lengths.limit() > room { Lengths::plan(settings::padding(c), Some(room), stats)? } else { lengths })
}

fn describe_captions(stats: &ContentStats, lengths: &Lengths, notes: &mut Vec<String>) {
    let sample = if stats.is_sample() { format!(" (of {} looked at)", stats.scanned) } else { String::new() };
    notes.push(format!(
        "captions: {} on average, {} at most{sample}; padded to {:?}",
        plural(stats.mean_length().round() as u64, "character"),
        stats.longest(),
        lengths.buckets()
    ));
    let cut = stats.longer_than(lengths.limit());
    if cut > 0 {
        let limit = plural(lengths.limit(), "character");
        notes.push(format!("longer than {limit}, and cut there: {}", plural(cut, "caption")));
    }
    for (reason, n) in &stats.unusable {
        notes.push(format!("not usable: {} ({reason})", plural(*n, "row")));
    }
}

/// The commonest first character among the first captions of a source.
fn first_character(source: &dyn Source) -> Option<char> {
    let mut counts = BTreeMap::<char, usize>::new();
    for row in 0..source.len().min(10_000) {
        if let Some(first) = source.caption(row).ok().and_then(|c| c.chars().next()) {
            *counts.entry(first).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|&(c, n)| (n, std::cmp::Reverse(c))).map(|(c, _)| c)
}
