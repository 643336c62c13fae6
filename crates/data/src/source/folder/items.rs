//! The pictures of a folder with their captions, whichever way they are written down.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::layout::Scope;
use super::walk::{Found, walk};
use super::{beside, metadata};
use crate::source::SourceError;
use crate::source::TextOptions;
#[cfg(unix)]
use crate::source::fingerprint::Fingerprint;
use crate::source::groups::Captions;
use crate::source::standin;
use crate::text::count;

/// A picture.
#[derive(Debug)]
pub(super) struct Item {
    /// Relative to the base; as written, if it leads out.
    pub(super) name: PathBuf,
    /// It leads out of the folder, and is not looked at.
    pub(super) outside: bool,
    /// Its line in the metadata.
    pub(super) line: Option<u64>,
}

impl Item {
    /// Its file; `None` if there is none to be looked at.
    pub(super) fn file(&self, base: &Path) -> Option<Metadata> {
        if self.outside {
            return None;
        }
        std::fs::metadata(base.join(&self.name)).ok()
    }
}

/// What tells a file from all others, under whatever names it is there; not known everywhere.
#[cfg(unix)]
pub(super) fn identity(file: &Metadata) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut fingerprint = Fingerprint::new("file");
    fingerprint.number(file.dev());
    fingerprint.number(file.ino());
    file.is_file().then(|| fingerprint.value())
}

/// What tells a file from all others, under whatever names it is there; not known here.
#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> Option<u64> {
    None
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) pictures: Vec<Item>,
    /// One group for each picture.
    pub(super) captions: Captions,
    pub(super) notes: Vec<String>,
}

/// Reads the captions of a scope.
pub(super) fn read(scope: &Scope, options: &TextOptions) -> Result<Items, SourceError> {
    let folder = scope.pictures();
    let found = walk(&folder)?;
    let mut items = match &scope.metadata {
        Some(path) => metadata::read(path, scope, options)?,
        None => beside::read(&folder, &found.pictures, options)?,
    };
    if items.pictures.is_empty() {
        return Err(nothing(scope, &found));
    }
    if items.captions.none_usable() {
        let (_, what) = items.captions.get(0).err().unwrap_or(("", String::new()));
        let found =
            format!("no usable caption in {}; the first: {what}", count(items.pictures.len(), "picture"));
        return Err(SourceError::not_usable(&scope.origin(), found));
    }
    say_left_out(scope, &found, &mut items);
    Ok(items)
}

/// Says what lies in the folder and is not used.
fn say_left_out(scope: &Scope, found: &Found, items: &mut Items) {
    let used: HashSet<&Path> = items.pictures.iter().map(|item| &*item.name).collect();
    let below = scope.under.as_ref().map_or_else(PathBuf::new, PathBuf::from);
    let left: Vec<PathBuf> =
        found.pictures.iter().map(|p| below.join(p)).filter(|p| !used.contains(&**p)).collect();
    let what = match scope.metadata {
        Some(_) => "without a row in the metadata",
        None => "without a .txt file beside it",
    };
    let lists = [
        ("picture", what, left),
        ("linked folder", "not followed", found.links.clone()),
        ("metadata file", "in a sub-folder and not read", found.deeper.clone()),
    ];
    for (noun, what, paths) in lists.into_iter().filter(|(_, _, paths)| !paths.is_empty()) {
        items.notes.push(format!("{} {what}, such as {}", count(paths.len(), noun), paths[0].display()));
    }
    if let Some(first) = found.unreadable.first() {
        let folders = count(found.unreadable.len(), "folder");
        items.notes.push(format!("{folders} that cannot be read, such as {first}"));
    }
}

/// Why nothing can be trained on so many pictures.
pub fn without_captions(pictures: usize) -> String {
    format!(
        "has {} but no captions: wanted is metadata.csv or metadata.jsonl with file_name and text, or a .txt file \
         beside each picture",
        count(pictures, "picture")
    )
}

/// Why there is nothing to train on.
fn nothing(scope: &Scope, found: &Found) -> SourceError {
    let folder = scope.pictures();
    let what = if let Some(path) = &scope.metadata {
        let under = scope.under.as_deref().unwrap_or_default();
        let found = format!("no row names a file in `{under}/`");
        return SourceError::not_usable(path, found);
    } else if standin::holds_parquet(&folder) {
        "holds parquet files: set data_config.dataset=parquet".into()
    } else if let Some(deeper) = found.deeper.first() {
        format!("has no metadata of its own, but {}: give that folder", folder.join(deeper).display())
    } else if let Some(arrow) = standin::arrow(&folder) {
        arrow.into()
    } else if found.pictures.is_empty() {
        "has no pictures".into()
    } else {
        without_captions(found.pictures.len())
    };
    SourceError::not_usable(&folder, what)
}
