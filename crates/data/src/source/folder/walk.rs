//! The picture files below a folder, in the order of their names.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::source::SourceError;

/// Endings of picture files, also of those that are not read: they are skipped aloud, not passed over.
const ENDINGS: [&str; 16] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "apng", "webp", "gif", "bmp", "tif", "tiff", "avif", "heic", "heif",
    "jxl", "jp2",
];

/// What was found below a folder.
#[derive(Debug, Default)]
pub(in crate::source) struct Found {
    /// Picture files, relative to the folder.
    pub(in crate::source) pictures: Vec<PathBuf>,
    /// Metadata files in sub-folders, which are not read.
    pub(in crate::source) deeper: Vec<PathBuf>,
    /// Folders that are links, which are not followed: they may lead back, or anywhere.
    pub(in crate::source) links: Vec<PathBuf>,
    /// Folders that cannot be read, and why.
    pub(in crate::source) unreadable: Vec<String>,
}

/// Walks through `folder`, which may itself be a link. Hidden files and folders are left out.
pub(in crate::source) fn walk(folder: &Path) -> Result<Found, SourceError> {
    walk_but(folder, &[])
}

/// The same without its sub-folders of these names.
pub(super) fn walk_but(folder: &Path, but: &[String]) -> Result<Found, SourceError> {
    let mut found = Found::default();
    let hidden = |e: &DirEntry| {
        e.file_name().as_encoded_bytes().starts_with(b".")
            || e.depth() == 1 && but.iter().any(|name| e.file_name() == name.as_str())
    };
    let visible = |e: &DirEntry| e.depth() == 0 || !hidden(e);
    let entries = WalkDir::new(folder).follow_root_links(true).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(visible) {
        match entry {
            Ok(entry) => found.look(folder, &entry),
            Err(e) if e.depth() == 0 => {
                return Err(SourceError::io(folder, e.into()));
            }
            Err(e) => found.unreadable.push(e.to_string()),
        }
    }
    Ok(found)
}

impl Found {
    fn look(&mut self, folder: &Path, entry: &DirEntry) {
        let Ok(path) = entry.path().strip_prefix(folder) else { return };
        if entry.path_is_symlink() && entry.depth() > 0 && entry.path().is_dir() {
            self.links.push(path.to_path_buf());
        } else if entry.file_type().is_dir() {
        } else if is_picture(path) {
            self.pictures.push(path.to_path_buf());
        } else if entry.depth() > 1 && (path.ends_with("metadata.csv") || path.ends_with("metadata.jsonl")) {
            self.deeper.push(path.to_path_buf());
        }
    }
}

/// True if a file's name is one of a picture.
pub(super) fn is_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|e| ENDINGS.contains(&e.as_str()))
}
