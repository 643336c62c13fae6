//! The name of a new run: a folder under the folder of runs, and one for its snapshots where runs share a place for them.
//!
//! Invariants: creation is exclusive in both places; what was created is removed again unless it is kept.
use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::RunDirError;
use crate::snapshot::WriteError;

/// Runs that may start in one second under one name.
const MAX_SAME_SECOND: u32 = 10_000;

/// Folders that belong to a new run.
pub(super) struct Claimed {
    /// Their name.
    pub name: String,
    /// What was created, in this order.
    made: Vec<PathBuf>,
}

impl Claimed {
    /// The run starts: its folders stay.
    pub fn keep(&mut self) {
        self.made.clear();
    }

    /// Creates a folder with those above it, unless it is there.
    pub fn make_all(&mut self, dir: &Path) -> io::Result<()> {
        let missing = dir.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        self.made.extend(missing.into_iter().rev());
        fs::create_dir_all(dir)
    }

    /// Creates a folder that nobody has; false if somebody has.
    fn make_new(&mut self, dir: PathBuf) -> io::Result<bool> {
        match fs::create_dir(&dir) {
            Ok(()) => self.made.push(dir),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(e) => return Err(e),
        }
        Ok(true)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // Those that are not empty hold something of others, and stay.
        self.made.iter().rev().for_each(|dir| drop(fs::remove_dir(dir)));
    }
}

/// Creates the folder `base`, `base-2`, ...: the first that nobody has under `root`, nor in `snapshots` if that is
/// absolute.
pub(super) fn first_free(
    root: &Path,
    base: &str,
    snapshots: &Path,
    needed: u64,
) -> Result<Claimed, RunDirError> {
    let create = |path: &Path, source| RunDirError::Create { path: path.to_path_buf(), source };
    let save = |path: PathBuf, source| RunDirError::Snapshots(WriteError::new(path, needed, source));
    let mut claimed = Claimed { name: base.to_string(), made: Vec::new() };
    claimed.make_all(root).map_err(|e| create(root, e))?;
    let shared = snapshots.is_absolute();
    if shared {
        claimed.make_all(snapshots).map_err(|e| save(snapshots.to_path_buf(), e))?;
    }
    // Where both are one place, one folder serves for both.
    let shared = shared && !same(root, snapshots);
    for n in 1..=MAX_SAME_SECOND {
        let name = if n == 1 { base.to_string() } else { format!("{base}-{n}") };
        let own = root.join(&name);
        if !claimed.make_new(own.clone()).map_err(|e| create(&own, e))? {
            continue;
        }
        let place = snapshots.join(&name);
        if !shared || claimed.make_new(place.clone()).map_err(|e| save(place, e))? {
            claimed.name = name;
            return Ok(claimed);
        }
        // Nobody else had it, and it is empty.
        claimed.made.pop().map_or(Ok(()), fs::remove_dir).map_err(|e| create(&own, e))?;
    }
    let many =
        io::Error::new(io::ErrorKind::AlreadyExists, "too many runs of this name started in this second");
    Err(create(&root.join(base), many))
}

fn same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
