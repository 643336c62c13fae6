//! Where cache files are, and how much they may take.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ocelli_ir::rng::hash_name;

/// Bytes that the files of the automatic folder take together, at most: those that were used least lately are removed for
/// a new one.
pub const FOLDER_BYTES: u64 = 64 << 30;

/// The end of a cache file's name.
const SUFFIX: &str = "pictures";

/// Where a cache is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this folder of the program's own, which is kept small.
    Automatic(PathBuf),
    /// In a folder that a person named, a file for each key.
    Folder(PathBuf),
    /// A file that a person named.
    File(PathBuf),
}

/// The automatic folder: `$XDG_CACHE_HOME/ocelli/data` or `~/.cache/ocelli/data`.
pub fn folder() -> Option<PathBuf> {
    let absolute = |p: std::ffi::OsString| Some(PathBuf::from(p)).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").and_then(absolute).map(|home| home.join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").and_then(absolute).or_else(home)?;
    Some(cache.join("ocelli").join("data"))
}

impl Place {
    /// What a person named: a folder that is there, or whose name ends as one; else a file.
    pub fn named(path: &str) -> Self {
        let ends = path.ends_with(std::path::is_separator);
        if ends || Path::new(path).is_dir() { Self::Folder(path.into()) } else { Self::File(path.into()) }
    }

    /// The file of a key.
    pub(super) fn path(&self, key: &str) -> PathBuf {
        match self {
            Self::Automatic(folder) | Self::Folder(folder) => {
                folder.join(format!("{:016x}.{SUFFIX}", hash_name(key)))
            }
            Self::File(path) => path.clone(),
        }
    }

    /// Makes the folder, removes what killed runs left in it, and in the automatic one makes room for `bytes` more.
    pub(super) fn prepare(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        sweep(parent);
        if let Self::Automatic(folder) = self {
            make_room(folder, FOLDER_BYTES.saturating_sub(bytes));
        }
        Ok(())
    }
}

/// Bytes free where `path` is to be.
pub(super) fn free(path: &Path) -> Option<u64> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs4::available_space(parent).ok()
}

/// Notes that a file was used just now; if that cannot be, it looks older than it is.
pub(super) fn used(path: &Path) {
    if let Ok(file) = File::options().append(true).open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Name of the temporary file in which one is made.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!(".{name}.{}.{:x}.making", std::process::id(), unique()))
}

/// A number that no other call of this process has.
fn unique() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Removes temporary files that no process holds locked any more.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if !name.to_string_lossy().ends_with(".making") || !name.to_string_lossy().starts_with('.') {
            continue;
        }
        // One that was begun just now is not locked yet.
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if age.is_some_and(|age| age > Duration::from_secs(60))
            && let Ok(file) = File::options().write(true).open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Removes the files that were used least lately until the others take no more than `most` bytes.
fn make_room(folder: &Path, most: u64) {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == SUFFIX))
        .filter_map(|entry| entry.metadata().ok().map(|m| (entry.path(), m)))
        .map(|(path, m)| (m.modified().unwrap_or(SystemTime::UNIX_EPOCH), m.len(), path))
        .collect();
    files.sort();
    let mut all: u64 = files.iter().map(|file| file.1).sum();
    for (_, len, path) in files {
        if all <= most {
            break;
        }
        // Whoever has it open goes on reading it.
        if fs::remove_file(&path).is_ok() {
            all -= len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_by_those_used_least_lately() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, age: u64| {
            let path = dir.path().join(name);
            fs::write(&path, [0; 100]).unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            path
        };
        let [a, b, c] =
            [("a.pictures", 300), ("b.pictures", 100), ("c.pictures", 200)].map(|(n, t)| file(n, t));
        let other = file("other.txt", 1000);
        used(&a);
        make_room(dir.path(), 250);
        assert_eq!([&a, &b, &c, &other].map(|p| p.exists()), [true, true, false, true]);
    }

    #[test]
    fn leftovers_go_unless_someone_is_at_work() {
        let dir = tempfile::tempdir().unwrap();
        let [old, held] = [0, 1].map(|_| temporary(&dir.path().join("x.pictures")));
        let [_first, file] = [&old, &held].map(|path| {
            let file = File::create(path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
            file
        });
        file.lock().unwrap();
        sweep(dir.path());
        assert!(!old.exists() && held.exists());
    }

    #[test]
    fn names() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Place::named("x/y"), Place::File("x/y".into()));
        assert_eq!(Place::named("x/y/"), Place::Folder("x/y/".into()));
        let here = dir.path().to_str().unwrap();
        assert_eq!(Place::named(here), Place::Folder(here.into()));
        assert_ne!(Place::named("d/").path("a"), Place::named("d/").path("b"));
    }
}
