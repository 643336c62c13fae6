//! Data sets of the Hugging Face hub: fetched into the hub's own cache, and read from there.
//!
//! The cache has the layout of the hub's Python client, so that each finds what the other fetched. A data set's
//! parquet files are those of its revision, or, where it holds none, those that the hub made of it (the branch
//! `refs/convert/parquet`).
//!
//! Invariants: [`fetch`] is the only place of this workspace that uses the network; nothing is asked when the cache
//! holds every wanted file of the revision, or when the environment forbids it; the token goes to the hub alone.

mod address;
mod cache;
mod client;
mod digest;
mod download;
mod error;
mod failure;
mod held;
mod listing;
mod name;
mod online;
mod partial;
mod relay;
mod remote;
mod select;
mod settings;
mod text;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::source::SplitNames;
use crate::text::count;
use cache::Cache;
use client::Client;
use held::Held;

pub use error::{HubError, Missing};
pub use name::{DataSet, Place, place};
pub use settings::Settings;

/// The branch with the parquet files that the hub makes of data sets of other formats.
const CONVERTED: &str = "refs/convert/parquet";

/// What is told while fetching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// A line for a person.
    Note(&'a str),
    /// A line for a person about something that may be wrong.
    Warning(&'a str),
    /// A line for a person about what is waited for, and for how long: at most one in five seconds.
    Waiting(&'a str),
    /// How far a file is, in bytes.
    Progress {
        /// Its name in the data set.
        name: &'a str,
        /// Bytes there.
        done: u64,
        /// Bytes of the whole file.
        total: u64,
    },
    /// Nothing is fetched any more.
    Done,
}

/// A data set on this machine: paths of parquet files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The commit, hexadecimal.
    pub commit: String,
    /// The training split, by name.
    pub train: Vec<PathBuf>,
    /// The validation split, by name; empty if there is none.
    pub validation: Vec<PathBuf>,
    /// Which splits were taken, a line for a person.
    pub note: Option<String>,
    /// What was left out, a line each.
    pub warnings: Vec<String>,
}

/// Makes sure that the files of two splits of a data set are on this machine. `stop` ends it early.
///
/// # Errors
/// [`HubError`]: nothing that is wrong is left in the cache, and what came is kept.
pub fn fetch(
    set: &DataSet,
    splits: &SplitNames,
    settings: &Settings,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Fetched, HubError> {
    let cache = Cache::new(&settings.cache, &set.id);
    let held = held::look(&cache, set, splits)?;
    if let Held::Whole(fetched) = held {
        tell(Told::Note(&from_cache(set, &fetched, &cache.folder())));
        return Ok(fetched);
    }
    let missing = held.missing(set, &cache);
    if let Some(offline) = settings.offline {
        return match held {
            Held::Perhaps(fetched) => Ok(doubtful(set, fetched, &cache, offline, tell)),
            _ => Err(HubError::Offline { what: missing, offline }),
        };
    }
    let client = Client::new(settings, stop)?;
    let done = client.guarded(tell, |tell| online::fetch(&client, &cache, set, splits, tell));
    tell(Told::Done);
    match (done, held) {
        (Err(_), _) if client.stopped() => Err(HubError::Interrupted { cache: cache.folder() }),
        (Err(error), Held::Perhaps(fetched)) if error.is_absence() => {
            Ok(doubtful(set, fetched, &cache, &error.to_string(), tell))
        }
        (done, _) => done,
    }
}

/// What is in the cache may be all; there is no way to know.
fn doubtful(
    set: &DataSet,
    fetched: Fetched,
    cache: &Cache,
    why: &str,
    tell: &mut dyn FnMut(Told<'_>),
) -> Fetched {
    tell(Told::Note(&from_cache(set, &fetched, &cache.folder())));
    let n = fetched.train.len() + fetched.validation.len();
    tell(Told::Warning(&format!(
        "whether these {} are the whole data set could not be asked: {why}",
        count(n, "file")
    )));
    fetched
}

fn from_cache(set: &DataSet, fetched: &Fetched, folder: &Path) -> String {
    let n = fetched.train.len() + fetched.validation.len();
    format!(
        "hub: {} at {:.8}: {} from the cache {}",
        set.id,
        fetched.commit,
        count(n, "file"),
        folder.display()
    )
}

/// Free bytes for an ordinary user where `folder` is or would be; `None` where the system does not say.
fn free_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|path| path.exists())?;
    // Some network and user-space file systems report a size of 0: that is not "full" but "unknown".
    let stats = fs4::statvfs(existing).ok().filter(|stats| stats.total_space() > 0)?;
    Some(stats.available_space())
}
