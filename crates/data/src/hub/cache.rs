//! The hub's cache of one data set on this machine, in the layout of the hub's Python client:
//!
//! ```text
//! datasets--owner--name/refs/main                          the commit
//!                       trees/<commit>.json                all files of the commit
//!                       snapshots/<commit>/data/x.parquet  a link to
//!                       blobs/<sha256 or git's name>       the content; .incomplete while it is fetched
//! .locks/datasets--owner--name/<name of the content>.lock
//! ```
//!
//! Invariant: what stands under its final name is whole; everything gets there by a rename.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::HubError;
use super::listing::{Listing, is_commit, is_parquet};

/// Folders below a snapshot that are looked into, at most.
const DEPTH: usize = 16;

/// The cache of one data set.
pub(super) struct Cache {
    root: PathBuf,
    name: String,
}

/// How a file stands in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Present,
    Absent,
    /// It is there but cannot be right, for this reason.
    Damaged(String),
}

impl Cache {
    /// The cache of the data set `id` under `root`. Nothing is read or made yet.
    pub(super) fn new(root: &Path, id: &str) -> Self {
        Self { root: root.to_path_buf(), name: format!("datasets--{}", id.replace('/', "--")) }
    }

    /// The folder of the data set.
    pub(super) fn folder(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    /// The commit that a revision stood for when it was last asked for.
    pub(super) fn commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_ascii_lowercase());
        }
        let text = fs::read_to_string(self.folder().join("refs").join(revision)).ok()?;
        Some(text.trim().to_string()).filter(|commit| is_commit(commit))
    }

    /// The files of a commit, if the cache knows them.
    pub(super) fn tree(&self, commit: &str) -> Option<Listing> {
        Listing::of_tree(commit, &fs::read_to_string(self.tree_path(commit)).ok()?)
    }

    /// Remembers what a revision is and which files it has.
    pub(super) fn remember(&self, revision: &str, listing: &Listing) -> Result<(), HubError> {
        if let Some(tree) = listing.to_tree() {
            replace(&self.tree_path(&listing.commit), tree.as_bytes())?;
        }
        // A commit needs no reference to itself.
        if self.commit(revision).as_ref() == Some(&listing.commit) {
            return Ok(());
        }
        replace(&self.folder().join("refs").join(revision), listing.commit.as_bytes())
    }

    fn tree_path(&self, commit: &str) -> PathBuf {
        self.folder().join("trees").join(format!("{commit}.json"))
    }

    /// Where a file of a commit is, or would be.
    pub(super) fn path(&self, commit: &str, name: &str) -> PathBuf {
        name.split('/').fold(self.snapshot(commit), |path, part| path.join(part))
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder().join("snapshots").join(commit)
    }

    /// Names of the parquet files that are there of a commit, also of those whose content is gone.
    pub(super) fn present(&self, commit: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect(&self.snapshot(commit), "", DEPTH, &mut names);
        names
    }

    /// How a file stands; its size is compared if it is known.
    pub(super) fn state(&self, commit: &str, name: &str, size: Option<u64>) -> State {
        let path = self.path(commit, name);
        match (fs::symlink_metadata(&path), fs::metadata(&path)) {
            (Err(_), _) => State::Absent,
            (Ok(_), Err(e)) if e.kind() == io::ErrorKind::NotFound => {
                State::Damaged("a link to content that is not there".into())
            }
            (Ok(_), Err(e)) => State::Damaged(e.to_string()),
            (Ok(_), Ok(found)) => match wrong_size(&found, size) {
                Some(why) => State::Damaged(why),
                None => State::Present,
            },
        }
    }

    /// The path of content.
    pub(super) fn blob(&self, content: &str) -> PathBuf {
        self.folder().join("blobs").join(content)
    }

    /// True if the content is there in full. What is there but cannot be right is removed.
    pub(super) fn has_blob(&self, content: &str, size: u64) -> Result<bool, HubError> {
        let path = self.blob(content);
        let Ok(found) = fs::metadata(&path) else { return Ok(false) };
        if wrong_size(&found, Some(size)).is_none() {
            return Ok(true);
        }
        fs::remove_file(&path).map_err(|source| HubError::Io { path, doing: "removed", source })?;
        Ok(false)
    }

    /// Puts content under the name of a file: as a link, or where the file system has none, as a second name or copy.
    pub(super) fn link(&self, commit: &str, name: &str, content: &str) -> Result<(), HubError> {
        let (path, blob) = (self.path(commit, name), self.blob(content));
        make_folder_of(&path)?;
        let temporary = temporary(&path);
        let up = Path::new(name).components().filter(|c| matches!(c, Component::Normal(_))).count() + 1;
        let target = (0..up).map(|_| "..").collect::<PathBuf>().join("blobs").join(content);
        let made = symlink(&target, &temporary)
            .or_else(|_| fs::hard_link(&blob, &temporary))
            .or_else(|_| fs::copy(&blob, &temporary).map(drop))
            .and_then(|()| fs::rename(&temporary, &path));
        made.map_err(|source| {
            // The first error is the one to report.
            let _ = fs::remove_file(&temporary);
            HubError::Io { path, doing: "made", source }
        })
    }

    /// Keeps other programs from fetching the same content until dropped. `None` if another has it now.
    pub(super) fn lock(&self, content: &str) -> Result<Option<Lock>, HubError> {
        let path = self.root.join(".locks").join(&self.name).join(format!("{content}.lock"));
        make_folder_of(&path)?;
        let io = |source| HubError::Io { path: path.clone(), doing: "opened", source };
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file, held: true })),
            Err(TryLockError::WouldBlock) => Ok(None),
            // A file system without locks.
            Err(TryLockError::Error(_)) => Ok(Some(Lock { _file: file, held: false })),
        }
    }
}

/// A lock on content; gone with the process at the latest.
pub(super) struct Lock {
    _file: File,
    /// False on file systems without locks: another program may be at the same content.
    pub(super) held: bool,
}

fn wrong_size(found: &fs::Metadata, size: Option<u64>) -> Option<String> {
    match size {
        _ if !found.is_file() => Some("not a file".into()),
        Some(size) if size != found.len() => Some(format!("{} bytes instead of {size}", found.len())),
        None if found.len() == 0 => Some("0 bytes".into()),
        _ => None,
    }
}

/// Makes the folders above a file.
pub(super) fn make_folder_of(path: &Path) -> Result<(), HubError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|source| HubError::Io { path: folder.into(), doing: "made", source })
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    make_folder_of(path)?;
    let temporary = temporary(path);
    fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path)).map_err(|source| {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
        HubError::Io { path: path.into(), doing: "written", source }
    })
}

/// A name beside `path` that no other process and no other thread has.
fn temporary(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{n}.tmp", std::process::id()))
}

fn collect(folder: &Path, above: &str, depth: usize, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if above.is_empty() { name.clone() } else { format!("{above}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect(&entry.path(), &path, depth - 1, names),
            Ok(kind) if !kind.is_dir() && is_parquet(&name) && !name.starts_with('.') => {
                names.insert(path);
            }
            _ => {}
        }
    }
}

#[cfg(unix)]
fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(windows)]
fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_at_once_write_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trees/commit.json");
        std::thread::scope(|scope| {
            for n in 0..8_u8 {
                let path = &path;
                scope.spawn(move || (0..200).for_each(|_| replace(path, &[n; 1000]).unwrap()));
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() == 1000 && bytes.iter().all(|&b| b == bytes[0]));
        assert_eq!(fs::read_dir(dir.path().join("trees")).unwrap().count(), 1, "no temporary file is left");
    }
}
