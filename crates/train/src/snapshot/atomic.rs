//! Whole or not at all: how every file that must survive a kill is written.
//!
//! Invariant: under the final name stands either what stood there before or all of the new bytes, synced to the disk.
//! A failure removes the temporary file; a kill leaves one behind, which [`sweep`] removes later.
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A file could not be written; no part of it stands under its name.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}{}", path.display(), self.rest())]
pub struct WriteError {
    /// The final name.
    pub path: PathBuf,
    /// Bytes of the new file.
    pub needed: u64,
    /// Bytes free in its file system at the time of the error, if known.
    pub free: Option<u64>,
    /// The system's reason.
    pub source: io::Error,
    /// It is a device such as /dev/full, not a file.
    pub device: bool,
}

impl WriteError {
    /// The error of a file or folder `path` that could not be written.
    pub(crate) fn new(path: PathBuf, needed: u64, source: io::Error) -> Self {
        let free = free_bytes(folder(&path));
        Self { path, needed, free, source, device: false }
    }

    /// The error of a device, which has neither room nor a limit of its own.
    fn of_device(path: PathBuf, needed: u64, source: io::Error) -> Self {
        Self { path, needed, free: None, source, device: true }
    }

    /// What stands behind the system's reason.
    fn rest(&self) -> String {
        if self.device {
            return format!("; {} bytes needed. That is a device, not a file: choose a file", self.needed);
        }
        let free = self.free.map_or("an unknown number of bytes".to_string(), |n| format!("{n} bytes"));
        let advice = advice(self.source.kind(), self.needed, self.free);
        format!(
            "; {} bytes needed, {free} free there. Nothing half-written is left under that name. {advice}",
            self.needed
        )
    }
}

/// What can be done about it.
fn advice(kind: io::ErrorKind, needed: u64, free: Option<u64>) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match kind {
        FileTooLarge | QuotaExceeded | StorageFull if free.is_some_and(|free| free >= needed) => {
            "There is room, so a limit stands in the way: on the size of a file (`ulimit -f`; a FAT file system ends \
             at 4 GiB), or a quota. Raise it or choose another folder"
        }
        FileTooLarge | QuotaExceeded | StorageFull => "Free some space or choose another folder",
        _ => "Choose another folder",
    }
}

/// Writes `bytes` under `path`, wholly or not at all. The folder is created if it is missing.
///
/// # Errors
/// [`WriteError`], after which nothing has changed under that name.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write_atomically(path, bytes.len() as u64, |file| file.write_all(bytes))
}

/// As [`write_whole`], with `fill` writing the `needed` bytes.
pub(super) fn write_atomically(
    path: &Path,
    needed: u64,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), WriteError> {
    let error = |source| WriteError::new(path.to_path_buf(), needed, source);
    match fs::metadata(path).map(|m| m.file_type()) {
        // A device such as /dev/full must not be replaced by a file: it is written to as it is.
        Ok(kind) if is_character_device(kind) => {
            return write_device(path, fill)
                .map_err(|e| WriteError::of_device(path.to_path_buf(), needed, e));
        }
        Ok(kind) if !kind.is_file() => return Err(error(io::Error::other("it exists and is not a file"))),
        _ => {}
    }
    let (mut file, guard) = prepare(path, needed).map_err(error)?;
    let written = fill(&mut file).and_then(|()| file.sync_all());
    // The file stays open, and with it locked, until it has its final name.
    written.and_then(|()| guard.rename_to(path)).and_then(|()| sync_folder(folder(path))).map_err(error)
}

/// Tries whether files of `needed` bytes can be written in `dir`, which is created if it is missing: there is room for
/// one, and a small one can be written. Nothing is left of it.
///
/// # Errors
/// [`WriteError`] as the writing of such a file would give.
pub fn try_folder(dir: &Path, needed: u64) -> Result<(), WriteError> {
    let tried = prepare(&dir.join("try"), needed).and_then(|(mut file, _removed)| {
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    tried.map_err(|source| WriteError::new(dir.to_path_buf(), needed, source))
}

/// The folder of `path`, room in it, and a temporary file there.
fn prepare(path: &Path, needed: u64) -> io::Result<(File, Temporary)> {
    fs::create_dir_all(folder(path))?;
    if free_bytes(folder(path)).is_some_and(|free| free < needed) {
        return Err(io::Error::new(io::ErrorKind::StorageFull, "not enough free space"));
    }
    create_temporary(path)
}

/// Removes temporary files that killed writers left in `dir`. Those still being written are locked and stay.
pub fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let ours = path.file_name().and_then(|n| n.to_str()).is_some_and(is_temporary_name);
        // Young files are left alone: one may have been created and not locked yet.
        let old = entry
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|t| t.elapsed().is_ok_and(|age| age > Duration::from_secs(60)));
        if ours && old && File::open(&path).is_ok_and(|f| f.try_lock().is_ok()) {
            // Another process may have removed it first: nothing to report.
            let _ = fs::remove_file(&path);
        }
    }
}

/// The folder that holds `path`.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// Free bytes for an ordinary user where `dir` is or would be; `None` where the system does not say.
fn free_bytes(dir: &Path) -> Option<u64> {
    let existing =
        dir.ancestors().find(|p| !p.as_os_str().is_empty() && p.exists()).unwrap_or(Path::new("."));
    // Some network and user-space file systems report a size of 0: that is not "full" but "unknown".
    let stats = fs4::statvfs(existing).ok().filter(|s| s.total_space() > 0)?;
    Some(stats.available_space())
}

#[cfg(unix)]
fn is_character_device(kind: fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&kind)
}

#[cfg(not(unix))]
fn is_character_device(_kind: fs::FileType) -> bool {
    false
}

fn write_device(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut device = OpenOptions::new().write(true).open(path)?;
    fill(&mut device)
}

const TMP_MARK: &str = ".ocelli-";

fn is_temporary_name(name: &str) -> bool {
    name.starts_with('.') && name.contains(TMP_MARK) && name.ends_with(".tmp")
}

/// A new, locked file beside `path` under a name that nobody else has.
fn create_temporary(path: &Path) -> io::Result<(File, Temporary)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?
        .to_string_lossy();
    loop {
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let tmp = folder(path).join(format!(".{name}{TMP_MARK}{}-{n}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&tmp) {
            Ok(file) => {
                // The lock only tells a sweeper that the file is in use; a file system without locks does no harm.
                let _ = file.try_lock();
                return Ok((file, Temporary { path: tmp, kept: false }));
            }
            // A process of another machine, or an earlier one with our id, left it.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// Removes the temporary file unless it got its final name.
struct Temporary {
    path: PathBuf,
    kept: bool,
}

impl Temporary {
    fn rename_to(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // The first error is the one to report; a leftover is swept later.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes the rename itself survive a power cut.
#[cfg(unix)]
fn sync_folder(dir: &Path) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        // Some file systems cannot sync a folder; the file itself is safe.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

/// Other systems order the rename themselves.
#[cfg(not(unix))]
fn sync_folder(_dir: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_free_space_is_known_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        let error =
            write_atomically(&path, u64::MAX, |_| unreachable!("nothing may be written")).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
        let free = error.free.unwrap();
        assert!(
            free > 0 && error.to_string().contains(&format!("{} bytes needed, {free} bytes free", u64::MAX))
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_limit_is_told_from_a_full_disk() {
        let limit = |kind, free| advice(kind, 10, free).contains("ulimit -f");
        assert!(limit(io::ErrorKind::FileTooLarge, Some(11)) && limit(io::ErrorKind::StorageFull, Some(10)));
        assert!(!limit(io::ErrorKind::FileTooLarge, None) && !limit(io::ErrorKind::StorageFull, Some(9)));
        assert!(!advice(io::ErrorKind::PermissionDenied, 1, Some(10)).contains("space"));
    }

    #[test]
    fn a_failed_fill_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        write_whole(&path, b"old").unwrap();
        let fill = |file: &mut File| file.write_all(b"half").and(Err(io::Error::other("broken")));
        let error = write_atomically(&path, 8, fill).unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_old_unlocked_leftovers_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, age: u64| {
            let file = File::create(dir.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
            file
        };
        file(".a.ocelli-1-0.tmp", 100);
        file(".young.ocelli-1-1.tmp", 5);
        file("other.tmp", 100);
        let (locked, guard) = create_temporary(&dir.path().join("b")).unwrap();
        locked.set_modified(std::time::SystemTime::now() - Duration::from_secs(100)).unwrap();
        sweep(dir.path());
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        let name = guard.path.file_name().unwrap();
        assert_eq!(left, [name, ".young.ocelli-1-1.tmp".as_ref(), "other.tmp".as_ref()]);
    }
}
