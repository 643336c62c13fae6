//! Text to token ids and back. A [`Tokenizer`] is saved inside every snapshot ([`Tokenizer::to_json`]), so a
//! trained model always captions with the vocabulary it was trained with.
//!
//! Invariants: text ids are never special ids, whatever the text says (the five characters `<pad>` are five
//! ids); `decode(encode(t)) == t` for text whose characters are all known.
mod chars;
mod vocab;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use crate::text::count as plural;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use chars::CharTokenizer;

/// What becomes of a character that the vocabulary lacks (`data_config.unknown`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownPolicy {
    /// The caption cannot be encoded.
    #[default]
    Error,
    /// It becomes `?` if the vocabulary has it, else a space if the vocabulary has that, else nothing.
    Replace,
}

/// A text as token ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// One id a token, no special id among them.
    pub ids: Vec<u32>,
    /// How many characters were replaced or dropped ([`UnknownPolicy::Replace`]).
    pub replaced: usize,
}

/// A text has characters that the vocabulary lacks.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{character:?} (U+{code:04X}) is not in the vocabulary ({} in this text)", plural(*.count, "unknown character"),
    code = u32::from(*.character)
)]
pub struct UnknownCharacters {
    /// The first of them.
    pub character: char,
    /// How many characters of the text are unknown, repetitions included.
    pub count: usize,
}

/// Text to ids and back. Ids are `0..vocab_size()`.
pub trait Tokenizer: Debug + Send + Sync {
    /// The ids of `text`, without any special id.
    fn encode(&self, text: &str) -> Result<Encoded, UnknownCharacters>;

    /// The text of `ids`; special ids and ids outside of the vocabulary give nothing.
    fn decode(&self, ids: &[u32]) -> String;

    /// Number of ids, special ones included: the width of the model's output.
    fn vocab_size(&self) -> usize;

    /// The id that fills the places behind a caption.
    fn pad(&self) -> u32;

    /// The id that ends a caption, if this vocabulary has one (`data_config.loss=masked` needs it).
    fn end_of_text(&self) -> Option<u32>;

    /// True if a text with this character can be encoded without loss.
    fn knows(&self, character: char) -> bool;

    /// Everything that [`from_json`] needs to make an equal tokenizer.
    fn to_json(&self) -> String;
}

/// Why a vocabulary cannot be used.
#[derive(Debug, Error)]
pub enum TokenizerError {
    /// The file cannot be read.
    #[error(
        "cannot read the vocabulary {}: {source}; data_config.vocab_path names a file with one character a line, or is auto: the \
         characters of the captions", path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another file stands in the vocabulary's place.
    #[error("{place}: {found}; a vocabulary is wanted, one character a line")]
    StandIn {
        /// The file.
        place: String,
        /// What it is, and what to do.
        found: String,
    },
    /// The file holds more than every Unicode character would need.
    #[error("{}: {bytes} bytes are too many for a vocabulary of characters; is it another file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Bytes that are not UTF-8.
    #[error("{place}: not UTF-8 from byte {offset} on; save the vocabulary as UTF-8")]
    NotUtf8 {
        /// The file.
        place: String,
        /// Where the first wrong byte stands, from 0.
        offset: usize,
    },
    /// No character at all.
    #[error("{place}: no characters; a vocabulary has one character on each line")]
    Empty {
        /// The file, or where the characters were to come from.
        place: String,
    },
    /// A line without a character.
    #[error(
        "{place}, line {line}: empty; each line holds one character (for the space: a line with one space, \
         which some editors strip)"
    )]
    EmptyLine {
        /// The file.
        place: String,
        /// The line, from 1.
        line: usize,
    },
    /// A line with several characters in a file of several lines.
    #[error(
        "{place}, line {line}: {text:?} has {count} characters; each line holds one (special tokens such as \
         <pad> are added by themselves and are not listed)"
    )]
    LongLine {
        /// The file.
        place: String,
        /// The line, from 1.
        line: usize,
        /// Its beginning.
        text: String,
        /// How many characters it has.
        count: usize,
    },
    /// The same character twice.
    #[error("{place}: {character:?} stands at {again} and already at {first}; remove one")]
    Duplicate {
        /// The file.
        place: String,
        /// Which character.
        character: char,
        /// Where it stands first: `line 3`, or `character 3` if all stand on one line.
        first: String,
        /// Where it stands again.
        again: String,
    },
    /// A saved tokenizer that this version cannot read.
    #[error("the saved tokenizer cannot be used: {detail}")]
    Saved {
        /// What is wrong with it.
        detail: String,
    },
}

/// Reads back what [`Tokenizer::to_json`] wrote.
pub fn from_json(json: &str) -> Result<Arc<dyn Tokenizer>, TokenizerError> {
    read_back(json, None)
}

/// As [`from_json`], with another policy for unknown characters than it was saved with.
pub fn from_json_with(json: &str, unknown: UnknownPolicy) -> Result<Arc<dyn Tokenizer>, TokenizerError> {
    read_back(json, Some(unknown))
}

fn read_back(json: &str, unknown: Option<UnknownPolicy>) -> Result<Arc<dyn Tokenizer>, TokenizerError> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let wrong = |detail: String| TokenizerError::Saved { detail };
    let Kind { kind } = serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
    match kind.as_str() {
        chars::KIND => Ok(Arc::new(CharTokenizer::from_json(json, unknown)?)),
        other => Err(wrong(format!("its kind is {other:?}; this version knows {:?}", chars::KIND))),
    }
}
