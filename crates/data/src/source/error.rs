//! Why a source cannot be opened. All of it is found before training starts.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A source that cannot be used, with the place and what to do.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file cannot be opened or read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// The file is not what it should be: empty, a stand-in, in another encoding or format.
    #[error("{}: {found}", path.display())]
    NotUsable {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what to do.
        found: String,
    },
    /// The header lacks a wanted column, or has it twice.
    #[error("{}: line 1: {found}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column, what the header has, and the nearest name.
        found: String,
    },
    /// A record that makes the whole file doubtful: a wrong number of fields, or bytes that are no text.
    #[error("{}: line {line} (row {row}): {found}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Line on which the record begins, from 1.
        line: u64,
        /// Row, from 0 as everywhere; the header is not a row.
        row: usize,
        /// What was found, and what to do.
        found: String,
    },
}

impl SourceError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn not_usable(path: &Path, found: impl Into<String>) -> Self {
        Self::NotUsable { path: path.to_path_buf(), found: found.into() }
    }
}
