//! How a folder is laid out: its splits, and where captions stand.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::source::SourceError;
use crate::source::splits::{Kind, SplitNames, known};
use crate::source::standin;

/// A folder, or a split of one, with its metadata.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// File names are relative to this.
    pub(super) base: PathBuf,
    /// `metadata.csv` or `metadata.jsonl`; `None`: a `.txt` beside each picture.
    pub(super) metadata: Option<PathBuf>,
    /// Only files in this sub-folder of `base` belong to it: the metadata above it are for all splits.
    pub(super) under: Option<String>,
}

impl Scope {
    /// The scope of a split: metadata in its own folder, or in the one above.
    pub(super) fn find(path: &Path, split: Option<&str>) -> Result<Self, SourceError> {
        let all = || Ok(Self { base: path.to_path_buf(), metadata: metadata(path)?, under: None });
        let Some(split) = split else { return all() };
        let base = path.join(split);
        let own = metadata(&base)?;
        if own.is_none()
            && let Some(above) = metadata(path)?
        {
            return Ok(Self { base: path.to_path_buf(), metadata: Some(above), under: Some(split.into()) });
        }
        Ok(Self { base, metadata: own, under: None })
    }

    /// The folder whose pictures belong to the scope.
    pub(super) fn pictures(&self) -> PathBuf {
        self.under.as_ref().map_or_else(|| self.base.clone(), |under| self.base.join(under))
    }

    /// Where captions come from, for a person.
    pub(super) fn origin(&self) -> PathBuf {
        self.metadata.clone().unwrap_or_else(|| self.base.clone())
    }
}

/// The metadata file in a folder.
fn metadata(folder: &Path) -> Result<Option<PathBuf>, SourceError> {
    let there = ["metadata.csv", "metadata.jsonl"].map(|name| folder.join(name)).into_iter();
    match &there.filter(|p| p.symlink_metadata().is_ok()).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        _ => Err(SourceError::not_usable(
            folder,
            "has both metadata.csv and metadata.jsonl: which one counts? Take one of them away",
        )),
    }
}

/// Names of the splits that `path` has as sub-folders: those known or asked for, if one to train on is there.
pub(super) fn splits(path: &Path, names: &SplitNames) -> Result<Vec<String>, SourceError> {
    let entries = std::fs::read_dir(path).map_err(|e| SourceError::io(path, e))?;
    let mut there = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| SourceError::io(path, e))?;
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|n| names.knows(n))
            && entry.path().is_dir()
        {
            there.push(name.to_owned());
        }
    }
    there.sort();
    let asked = !names.is_usual() || names.validation.is_some();
    let own = || metadata(path).map(|own| own.is_some());
    let to_train = there.iter().any(|name| known(name) == Some(Kind::Train));
    Ok(if to_train || asked || !own()? && !has_pictures(path) { there } else { Vec::new() })
}

/// True if there is a picture in the folder itself.
fn has_pictures(path: &Path) -> bool {
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries.map(|e| e.path()).any(|p| super::walk::is_picture(&p))
}

/// Refuses what is no folder of pictures, with the source that reads it.
pub(super) fn refuse_others(path: &Path) -> Result<(), SourceError> {
    let about = std::fs::metadata(path).map_err(|e| SourceError::io(path, e))?;
    if about.is_dir() {
        return Ok(());
    }
    if !about.is_file() {
        return Err(SourceError::not_usable(path, "is neither a folder nor a plain file"));
    }
    let file = File::open(path).map_err(|e| SourceError::io(path, e))?;
    Err(SourceError::not_usable(
        path,
        format!("is a file: a folder is wanted{}", standin::dataset(path, &file)),
    ))
}
