//! Where samples come from. A [`Source`] is a fixed, indexable set of rows; reading a row may fail, and a row
//! that fails is a *skipped sample*: it never stops a run and never changes the order of the others.

mod base64;
mod caption;
pub mod csv;
mod delimiter;
mod encoding;
mod error;
mod fingerprint;
mod first;
pub mod folder;
mod groups;
mod name;
mod names;
mod options;
pub mod parquet;
mod picture;
pub mod pictures;
mod positioned;
mod repeats;
pub mod shapes;
mod spans;
mod splits;
mod standin;
mod table;
pub mod tar;
mod transcode;
mod unmarked;

use thiserror::Error;

use crate::image::{Reject, Warnings};

pub use caption::clean_caption;
pub use delimiter::Delimiter;
pub use encoding::Encoding;
pub use error::SourceError;
pub use first::first_captions;
pub use folder::without_captions;
pub use groups::Groups;
pub use options::{Quoting, TextOptions};
pub use picture::MAX_FILE_BYTES;
pub(crate) use positioned::{read_exact_at, write_all_at};
pub use repeats::Repeats;
pub use spans::Blocks;
pub use splits::SplitNames;
pub(crate) use standin::stand_in;
pub use standin::{begins_as_picture, holds_parquet, holds_tar};

/// What goes with a picture that was read; the pixels are where the reader wanted them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The caption, cleaned (line breaks are one space, no white space at either end), never empty.
    pub caption: String,
    /// Width and height of the picture in pixels before it was scaled.
    pub original: (u32, u32),
    /// What the picture's file gives reason to report although no pixel is missing.
    pub warnings: Warnings,
}

/// A sample with memory of its own: for who looks at single rows. Training reads into its batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pictured {
    /// `size x size` pixels, RGB, 8 bits a channel, row by row (HWC).
    pub pixels: Vec<u8>,
    /// As in [`Sample`].
    pub caption: String,
    /// As in [`Sample`].
    pub original: (u32, u32),
    /// As in [`Sample`].
    pub warnings: Warnings,
}

/// The reason of a [`BadSample`] that has the name of a picture where the picture itself is wanted.
pub const FILE_NAME: &str = "file_name";

/// The reason of a [`BadSample`] that has an address where the picture, or the name of its file, is wanted.
pub(crate) const WEB_ADDRESS: &str = "web_address";

/// Why a row cannot be used. `reason` is a stable, machine-readable word such as `truncated`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}: {reason}: {detail}")]
pub struct BadSample {
    /// A stable word: `empty_file`, `not_an_image`, `truncated`, `corrupt`, `too_many_pixels`,
    /// `bad_base64`, [`FILE_NAME`], `empty_caption`, `empty_image`, `missing_file`, `web_address`, `outside_folder`, `read_error`, ...
    pub reason: &'static str,
    /// What was found, for a person.
    pub detail: String,
    /// Where: file and row, as a person would look for it.
    pub place: String,
    /// The file, or what else the row is of.
    pub file: String,
    /// Bytes of the picture, or of the text that stands for it, where any were seen.
    pub bytes: Option<u64>,
}

impl BadSample {
    /// The same, with what was seen of the picture.
    pub(crate) fn seen(self, reject: &Reject) -> Self {
        Self { bytes: reject.bytes, ..self }
    }
}

/// A fixed set of rows. Row numbers are `0..len()`, including rows that turn out bad.
pub trait Source: Send + Sync {
    /// How many rows there are.
    fn len(&self) -> usize;

    /// True if there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of characters (Unicode scalar values) of the cleaned caption of `row`, known without decoding
    /// a picture; 0 if the row is known to be unusable. Padded lengths are computed from this, so that all
    /// ranks agree on them.
    fn caption_chars(&self, row: usize) -> usize;

    /// The cleaned caption of `row`.
    fn caption(&self, row: usize) -> Result<String, BadSample>;

    /// Reads `row` and scales its picture to `size x size`: into `pixels`, `size * size * 3` bytes (RGB, row by row), all
    /// of which are written. After an error they hold anything.
    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample>;

    /// [`read`](Self::read) into memory of its own.
    fn pictured(&self, row: usize, size: usize) -> Result<Pictured, BadSample> {
        let mut pixels = vec![0; size * size * 3];
        let Sample { caption, original, warnings } = self.read(row, size, &mut pixels)?;
        Ok(Pictured { pixels, caption, original, warnings })
    }

    /// All captions of the picture of `row`, cleaned, the row's own among them: what a caption of it is judged by.
    /// Those that cannot be read are left out.
    fn captions_of(&self, row: usize) -> Vec<String> {
        let captions =
            |rows: &mut dyn Iterator<Item = usize>| rows.filter_map(|row| self.caption(row).ok()).collect();
        if let Some(repeats) = self.repeats() {
            return captions(&mut repeats.rows_of(self.picture_of(row)));
        }
        let rows =
            self.groups().map_or(row..row.saturating_add(1), |groups| groups.rows_of(groups.picture_of(row)));
        captions(&mut rows.into_iter())
    }

    /// The number of the picture that `row` shows; rows of one picture have the same.
    fn picture_of(&self, row: usize) -> usize {
        match (self.repeats(), self.groups()) {
            (Some(repeats), _) => repeats.of_row().get(row).map_or(usize::MAX, |picture| *picture as usize),
            (None, Some(groups)) => groups.picture_of(row),
            (None, None) => row,
        }
    }

    /// Which rows share a picture; `None` if each row has a picture of its own.
    fn groups(&self) -> Option<&Groups> {
        None
    }

    /// Which rows show the same picture although each is a row of its own, and they may stand anywhere. `None` if no two
    /// rows do, or if that is not known.
    fn repeats(&self) -> Option<&Repeats> {
        None
    }

    /// Which repeats are not known, in words that go before "could be on both sides of a split"; `None` if
    /// [`repeats`](Self::repeats) has all pictures that are equal to the byte.
    fn unknown_repeats(&self) -> Option<String> {
        None
    }

    /// Rows that lie together on disk; `None` if any order of rows costs the same.
    fn blocks(&self) -> Option<&Blocks> {
        None
    }

    /// Bytes of the files that rows are read from; 0 if they are drawn.
    fn bytes(&self) -> u64 {
        0
    }

    /// The number by which people know a row: that of the source itself, from 0, wherever a picture's captions are
    /// chosen from.
    fn number(&self, row: usize) -> usize {
        row
    }

    /// Changes when a file does that pictures come from, as far as content, or else lengths and times of the last change, tell; none if
    /// that cannot be told, or if pictures are drawn.
    fn stamp(&self) -> Option<u64> {
        None
    }

    /// Does something that later reads will profit from, for a thread that has nothing else to do; false if there is nothing
    /// left of it.
    fn read_ahead(&self) -> bool {
        false
    }

    /// What and where, for the log: `csv images/inputs.csv (3 rows)`.
    fn describe(&self) -> String;

    /// What a person should know before the first step, a line each: which columns are used, what is left out.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// A 64-bit fingerprint of the content that decides what a row is (not of decoding options), kept in
    /// snapshots so that a resume on other data is noticed.
    fn fingerprint(&self) -> u64;
}
