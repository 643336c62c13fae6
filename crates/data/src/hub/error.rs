//! Why data of the hub cannot be had. Every message says what, where, and what to do.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::text::size;

/// How to do without the hub, the end of several messages.
pub(super) const WITHOUT_THE_HUB: &str = "to train without the hub, set data_config.data_path to a folder \
    with the parquet files, or HF_HOME to a folder whose cache holds them";

/// A data set of the hub that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HubError {
    /// What was given is neither a path nor the name of a data set.
    #[error("data_config.data_path={given}: {why}")]
    Name {
        /// What was given.
        given: String,
        /// What is wrong with it, and what it should be.
        why: String,
    },
    /// A setting of the environment, or the revision, makes no sense.
    #[error("{what}: {why}")]
    Setting {
        /// The variable or key.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The hub, or the server it sent us to, cannot be reached.
    #[error(
        "cannot reach {url}: {why}. Check the network, HF_ENDPOINT and the proxy (HTTPS_PROXY); {WITHOUT_THE_HUB}"
    )]
    Unreachable {
        /// What was asked for.
        url: String,
        /// The system's word.
        why: String,
    },
    /// Not in the cache, and no request may be made.
    #[error("{what}, and {offline} forbids to ask the hub. Unset it once with a network; {WITHOUT_THE_HUB}")]
    Offline {
        /// What is missing where.
        what: String,
        /// The variable that forbids it.
        offline: &'static str,
    },
    /// The hub wants a token, or another one.
    #[error("{url}: access refused (status {status}{said}). {advice}")]
    Refused {
        /// What was asked for.
        url: String,
        /// HTTP status.
        status: u16,
        /// The server's own words, after a comma, or nothing.
        said: String,
        /// Which token was sent or where one was looked for, and what to do.
        advice: String,
    },
    /// No such data set, revision or file.
    #[error("{url}: no such {missing}{said}. {advice}")]
    NotFound {
        /// What was asked for.
        url: String,
        /// What of it does not exist.
        missing: Missing,
        /// The server's own words, after a comma, or nothing.
        said: String,
        /// What to do.
        advice: String,
    },
    /// The server failed, also after several attempts.
    #[error("{url}: the server answered with status {status}{said}. Try again later; {WITHOUT_THE_HUB}")]
    Server {
        /// What was asked for.
        url: String,
        /// HTTP status.
        status: u16,
        /// The server's own words, after a comma, or nothing.
        said: String,
    },
    /// The answer is not of the hub's kind.
    #[error("{url}: {found}")]
    Answer {
        /// Who answered.
        url: String,
        /// What came instead, and what to do.
        found: String,
    },
    /// The data set holds nothing that can be trained on, or several things.
    #[error("{data_set}: {found}")]
    Content {
        /// Data set and revision.
        data_set: String,
        /// What it holds, and what to do.
        found: String,
    },
    /// A download ended before its time, also after it was resumed.
    #[error(
        "{url}: cut off: {} wanted, {found} bytes came ({why}). What came is kept in {} and the same command goes on \
         from there", size(*wanted), partial.display()
    )]
    CutOff {
        /// The file on the server.
        url: String,
        /// Bytes of the whole file.
        wanted: u64,
        /// Bytes received.
        found: u64,
        /// The system's word.
        why: String,
        /// Where they are.
        partial: PathBuf,
    },
    /// The server holds other content than the hub says.
    #[error(
        "{url}: the wrong content came: {kind} {wanted} wanted, {found} found. It was thrown away; try again, and if that \
         helps not, the server (HF_ENDPOINT) or a proxy on the way changes files"
    )]
    Checksum {
        /// The file on the server.
        url: String,
        /// What is compared: `sha256`, `git blob`, `size`.
        kind: &'static str,
        /// What the hub says.
        wanted: String,
        /// What came.
        found: String,
    },
    /// No room.
    #[error(
        "{}: not enough space: {} needed, {} free. Free some, or set HF_HOME to a folder on another disk",
        folder.display(), size(*needed), free.map_or("an unknown amount".into(), size)
    )]
    NoSpace {
        /// The cache.
        folder: PathBuf,
        /// Bytes still to be written.
        needed: u64,
        /// Bytes free, where the system says.
        free: Option<u64>,
    },
    /// A file of the cache cannot be read or written.
    #[error("{}: cannot be {doing}: {source}. The cache's place is set by HF_HOME", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read`, `written`, ...
        doing: &'static str,
        /// The system's word.
        source: std::io::Error,
    },
    /// Stopped from outside.
    #[error("interrupted while fetching; what came is kept in {} and the same command goes on from there", cache.display())]
    Interrupted {
        /// The data set's folder of the cache.
        cache: PathBuf,
    },
}

/// What the hub does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The data set, or it is hidden from us.
    DataSet,
    /// The branch, tag or commit.
    Revision,
    /// One of the above, or a file: the server does not say.
    Something,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DataSet => "data set",
            Self::Revision => "revision",
            Self::Something => "data set, revision or file",
        })
    }
}

impl HubError {
    /// The cause alone, without what to do: for a line about another attempt.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Unreachable { url, why } => format!("cannot reach {url}: {why}"),
            Self::Server { url, status, said } => format!("{url}: status {status}{said}"),
            Self::CutOff { url, why, .. } => format!("{url}: cut off ({why})"),
            other => other.to_string(),
        }
    }

    /// True if the hub could not be asked: what is in the cache may serve.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Server { .. })
    }
}
