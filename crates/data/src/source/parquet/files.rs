//! The files of a folder of this machine, of a pattern, or of a range of numbers, and which of them make up the wanted splits.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::select::{Selection, Unselectable, missing, select};
use crate::source::splits::SplitNames;
use crate::source::{SourceError, standin};

/// The files of one split, in the order of their names.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) paths: Vec<PathBuf>,
    /// What a person would call it.
    pub(crate) shown: PathBuf,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) train: Split,
    pub(crate) validation: Option<Split>,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Split {
    /// Files that are known to make up a split.
    pub(crate) fn of(paths: Vec<PathBuf>, shown: PathBuf) -> Self {
        Self { paths, shown }
    }
}

/// Which files are looked for.
pub(crate) struct Wanted {
    /// What their names end with.
    pub(crate) ending: &'static str,
    /// Why a folder has none.
    pub(crate) none: fn(&Path) -> String,
}

/// Parquet files.
pub(crate) const PARQUET: Wanted = Wanted { ending: "parquet", none };

/// Finds the files of the splits asked for.
pub(crate) fn find(path: &Path, names: &SplitNames, wanted: &Wanted) -> Result<Files, SourceError> {
    let (root, paths, whole) = list(path, wanted)?;
    if let [only] = &paths[..]
        && only == path
    {
        names.choose(path, &[])?;
        let train = Split { paths, shown: path.into() };
        return Ok(Files { train, validation: None, notes: Vec::new(), warnings: Vec::new() });
    }
    let below = |path: &PathBuf| {
        let below = path.strip_prefix(&root).unwrap_or(path).components();
        below.map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    };
    let below: Vec<String> = paths.iter().map(below).collect();
    let Selection { train, validation, called, note, mut warnings } = select(&below, names)
        .map_err(|why| SourceError::not_usable(path, unselectable(path, why, wanted)))?;
    for files in [Some(&train), validation.as_ref()].into_iter().flatten() {
        match missing(&below, files) {
            Some(found) if whole => return Err(SourceError::not_usable(path, found)),
            found => warnings.extend(found),
        }
    }
    let split = |files: Vec<usize>, name: Option<String>| Split {
        paths: files.into_iter().map(|i| paths[i].clone()).collect(),
        shown: name.map_or_else(|| path.to_path_buf(), |name| path.join(name)),
    };
    let validation = validation.map(|files| split(files, called.1));
    Ok(Files { train: split(train, called.0), validation, notes: Vec::from_iter(note), warnings })
}

/// Why nothing can be selected below `path`, for a person.
fn unselectable(path: &Path, why: Unselectable, wanted: &Wanted) -> String {
    match why {
        Unselectable::NoParquet => (wanted.none)(path),
        Unselectable::Several(folders) => format!(
            "holds several sets of files, in {}: give one of them as data_config.data_path",
            folders.join(", ")
        ),
        Unselectable::Splits(why) => why,
    }
}

/// The folder that names are relative to, the files in order, and whether they are all that the folder has.
fn list(path: &Path, wanted: &Wanted) -> Result<(PathBuf, Vec<PathBuf>, bool), SourceError> {
    let about = std::fs::metadata(path);
    let pattern = path.to_str().filter(|text| about.is_err() && text.contains(['*', '?', '[']));
    if let Some((root, paths)) = path.to_str().filter(|_| about.is_err()).and_then(braces) {
        let absent =
            paths.iter().find_map(|path| Some(SourceError::io(path, std::fs::metadata(path).err()?)));
        return absent.map_or(Ok((root, paths, false)), Err);
    }
    let (root, mut paths, whole) = match (pattern, about) {
        (Some(pattern), _) => {
            let wrong = |e: glob::PatternError| SourceError::not_usable(path, format!("is no pattern: {e}"));
            let paths = glob::glob(pattern).map_err(wrong)?.filter_map(Result::ok).filter(|p| p.is_file());
            let fixed = pattern.split(['*', '?', '[']).next().unwrap_or_default();
            let root = fixed.rsplit_once('/').map_or("", |(root, _)| root);
            (PathBuf::from(root), paths.collect::<Vec<_>>(), false)
        }
        (None, Err(e)) => return Err(SourceError::io(path, e)),
        (None, Ok(about)) if about.is_dir() => (path.to_path_buf(), walk(path, wanted.ending)?, true),
        (None, Ok(_)) => return Ok((path.into(), vec![path.to_path_buf()], true)),
    };
    paths.sort();
    if paths.is_empty() {
        let none = if pattern.is_some() { NO_MATCH.into() } else { (wanted.none)(path) };
        return Err(SourceError::not_usable(path, none));
    }
    Ok((root, paths, whole))
}

/// No more files than this are named by a range.
const RANGE: u64 = 100_000;

/// The files that a range of numbers names, `a-{00000..00012}.tar`, and the folder that they lie in.
fn braces(text: &str) -> Option<(PathBuf, Vec<PathBuf>)> {
    let (before, rest) = text.split_once('{')?;
    let (range, after) = rest.split_once('}')?;
    let (first, last) = range.split_once("..")?;
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let (from, to, width) = (number(first)?, number(last)?, first.len());
    if to < from || to - from >= RANGE {
        return None;
    }
    let root = before.rsplit_once('/').map_or("", |(root, _)| root);
    let name = |n: u64| PathBuf::from(format!("{before}{n:0width$}{after}"));
    Some((root.into(), (from..=to).map(name).collect()))
}

/// All files of an ending below a folder. Links to files are followed (a cache is made of them), to folders not.
fn walk(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, SourceError> {
    let visible = |e: &DirEntry| e.depth() == 0 || !e.file_name().as_encoded_bytes().starts_with(b".");
    let mut paths = Vec::new();
    for entry in WalkDir::new(folder).follow_root_links(true).into_iter().filter_entry(visible) {
        let entry = entry.map_err(|e| {
            let place = e.path().unwrap_or(folder).to_path_buf();
            SourceError::io(&place, e.into())
        })?;
        let named = entry.path().extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        if named && entry.path().is_file() {
            paths.push(entry.into_path());
        }
    }
    Ok(paths)
}

/// What a pattern without files is.
const NO_MATCH: &str = "no file has a name like that";

/// Why a folder has no parquet file.
fn none(path: &Path) -> String {
    let names = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|e| e.file_name());
    let has = |ending: &str| names.into_iter().any(|n| n.to_string_lossy().to_lowercase().ends_with(ending));
    if has("metadata.csv") || path.join("metadata.jsonl").exists() {
        "has no .parquet file, but metadata: set data_config.dataset=folder".into()
    } else {
        standin::arrow(path).unwrap_or("has no .parquet file").into()
    }
}
