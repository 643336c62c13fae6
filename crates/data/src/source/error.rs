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
    /// There is no such file or folder.
    #[error("{}: No such file or folder{hint}", path.display())]
    Missing {
        /// What was looked for.
        path: PathBuf,
        /// The nearest name that is there, or empty.
        hint: String,
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
    #[error("{}: {place}{found}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// `line 1: ` in a table of text, else empty.
        place: &'static str,
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
        if source.kind() == std::io::ErrorKind::NotFound {
            return Self::Missing { path: path.to_path_buf(), hint: nearest(path) };
        }
        Self::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn not_usable(path: &Path, found: impl Into<String>) -> Self {
        Self::NotUsable { path: path.to_path_buf(), found: found.into() }
    }
}

/// A name further from the wanted one than this is no suggestion (1 is equal, 0 has nothing in common).
const NEAR: f64 = 0.75;
/// Names looked at in a folder.
const MOST: usize = 10_000;

/// The nearest name beside the first part of `path` that does not exist.
fn nearest(path: &Path) -> String {
    let here = || Path::new(".");
    let mut missing = path;
    let folder = loop {
        let parent =
            missing.parent().map_or_else(here, |p| if p.as_os_str().is_empty() { here() } else { p });
        if parent.is_dir() || parent == here() {
            break parent;
        }
        missing = parent;
    };
    let (Some(wanted), Ok(entries)) = (missing.file_name(), std::fs::read_dir(folder)) else {
        return String::new();
    };
    let wanted = wanted.to_string_lossy().to_lowercase();
    let names = entries.take(MOST).filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned()));
    let scored = names.map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &wanted), name));
    // Of equals the first by name: the order of a folder is not fixed.
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    let shown =
        |name: &str| if folder == here() { name.into() } else { folder.join(name).display().to_string() };
    match best {
        Some((score, name)) if score >= NEAR => format!(". Did you mean {}?", shown(&name)),
        _ if missing != path => format!(": there is no {}", missing.display()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_brings_the_nearest_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("images")).unwrap();
        std::fs::write(dir.path().join("images/inputs.csv"), "").unwrap();
        let of = |name: &str| {
            let path = dir.path().join(name);
            SourceError::io(&path, std::fs::File::open(&path).unwrap_err()).to_string()
        };
        assert!(of("images/input.csv").ends_with("images/inputs.csv?"), "{}", of("images/input.csv"));
        assert!(of("image/inputs.csv").ends_with("images?"), "{}", of("image/inputs.csv"));
        assert!(of("zzz/q.csv").ends_with("zzz"), "{}", of("zzz/q.csv"));
        assert!(nearest(Path::new("")).is_empty());
    }
}
