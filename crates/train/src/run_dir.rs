//! Run folders: `<root>/<config>-<YYYYmmdd-HHMMSS>/`, one for each run.
//!
//! Invariants: a folder belongs to the one run that created it, even when two start in the same second, and so does its
//! folder of snapshots; every file in it is written whole; a run is recognised by its `run.json`, or by
//! its snapshots if that is lost, not by its folder's name.
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};
use serde::{Deserialize, Serialize};

mod claim;
mod latest;

pub use latest::{latest_run_with, snapshot_folders};

use crate::snapshot::{SnapshotError, WriteError, try_folder, write_whole};

/// File that marks a run folder.
pub const RUN_FILE: &str = "run.json";

/// What `run.json` holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The preset's name, as given to `--config-name`.
    pub config_name: String,
    /// Identifies the run everywhere; no two runs share one.
    pub run_id: String,
    /// Local time of creation with its offset (RFC 3339).
    pub created: String,
    /// Version of the program that created the folder.
    pub ocelli_version: String,
    /// `trainer_config.snapshot_dir`: absolute, or relative to the run folder.
    pub snapshot_dir: PathBuf,
}

/// The folder of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDir {
    path: PathBuf,
    info: RunInfo,
}

/// A run folder could not be made, filled or searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// The system refused to create it.
    #[error(
        "trainer_config.run_dir: cannot create the run folder {}: {source}. Choose another folder for runs",
        path.display()
    )]
    Create {
        /// The folder that was to be.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file stands where the folder of runs should be.
    #[error("trainer_config.run_dir: {} is a file, and runs need a folder: choose another name", path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// No snapshot could be saved where they are to go.
    #[error("trainer_config.snapshot_dir: {0}")]
    Snapshots(WriteError),
    /// A file in it could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder of runs could not be listed.
    #[error("cannot list the runs in {}: {source}", path.display())]
    List {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The newest snapshot cannot be used, or a folder of snapshots cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl RunDir {
    /// Creates a new folder under `root` for a run of `config_name` that starts `now`, and tries whether snapshots of
    /// `needed` bytes can be saved in its folder of snapshots.
    ///
    /// If a run of this name started in the same second, `-2`, `-3` and so on is appended.
    ///
    /// # Errors
    /// [`RunDirError`] if the folders or its `run.json` cannot be written; nothing is left behind then.
    pub fn create(
        root: &Path,
        config_name: &str,
        snapshot_dir: &Path,
        needed: u64,
        now: SystemTime,
    ) -> Result<Self, RunDirError> {
        let fail = |path: &Path, source| RunDirError::Create { path: path.to_path_buf(), source };
        if root.is_file() {
            return Err(RunDirError::NoFolder { path: root.to_path_buf() });
        }
        let time = local_time(now);
        let base = format!("{}-{}", as_folder_name(config_name), time.strftime("%Y%m%d-%H%M%S"));
        let mut claimed = claim::first_free(root, &base, snapshot_dir, needed)?;
        let name = claimed.name.clone();
        let info = RunInfo {
            config_name: config_name.to_string(),
            // The same name may arise under another root or on another machine.
            run_id: format!("{name}-{:08x}", salt(now)),
            created: stamp(now),
            ocelli_version: env!("CARGO_PKG_VERSION").to_string(),
            snapshot_dir: snapshot_dir.to_path_buf(),
        };
        let run = RunDir { path: root.join(name), info };
        let text = serde_json::to_vec_pretty(&run.info).map_err(|e| fail(&run.path, e.into()))?;
        let place = run.snapshot_dir();
        let made = claimed.make_all(&place).map_err(|e| WriteError::new(place.clone(), needed, e));
        made.and_then(|()| try_folder(&place, needed)).map_err(RunDirError::Snapshots)?;
        run.write_whole(RUN_FILE, &text)?;
        claimed.keep();
        Ok(run)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its `run.json` holds.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Where the run's snapshots go: a relative `snapshot_dir` lies within the folder; in an absolute one each run
    /// has a folder of its own, named as the run's, so that runs that share it overwrite nothing.
    pub fn snapshot_dir(&self) -> PathBuf {
        let dir = self.path.join(&self.info.snapshot_dir);
        match self.path.file_name().filter(|_| self.info.snapshot_dir.is_absolute()) {
            Some(own) => dir.join(own),
            None => dir,
        }
    }

    /// The run whose folder `path` is, if it is one.
    pub fn open(path: &Path) -> Option<Self> {
        let text = fs::read(path.join(RUN_FILE)).ok()?;
        let info = serde_json::from_slice(&text).ok()?;
        Some(Self { path: path.to_path_buf(), info })
    }

    /// Writes a file of the folder, wholly or not at all.
    ///
    /// # Errors
    /// [`WriteError`], after which nothing has changed under that name.
    pub fn write_whole(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        write_whole(&self.path.join(name), bytes)
    }
}

/// All that lies under `root`, in no order; nothing if it is not there.
///
/// # Errors
/// [`RunDirError::List`] if `root` cannot be listed.
fn folders(root: &Path) -> Result<Vec<PathBuf>, RunDirError> {
    let fail = |source| RunDirError::List { path: root.to_path_buf(), source };
    match fs::read_dir(root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries.map_err(fail)?.map(|entry| Ok(entry.map_err(fail)?.path())).collect(),
    }
}

/// Local time with its offset (RFC 3339), for records.
pub fn stamp(now: SystemTime) -> String {
    local_time(now).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Local time, or UTC where the system's time zone is not known.
fn local_time(now: SystemTime) -> ZonedDateTime {
    let time = Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned_datetime(TimeZone::try_system().unwrap_or(TimeZone::UTC))
}

/// A config's name with everything that could leave the folder or trouble a shell replaced.
fn as_folder_name(config_name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = config_name.chars().map(safe).collect();
    name.trim_start_matches('.').to_string()
}

/// Some bits that differ between machines and moments.
fn salt(now: SystemTime) -> u32 {
    let nanos = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
    nanos ^ std::process::id().rotate_left(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_root() {
        assert_eq!(as_folder_name("coco_train"), "coco_train");
        assert_eq!(as_folder_name("../../etc/x y"), "_.._etc_x_y");
    }

    #[test]
    fn runs_that_share_a_folder_of_snapshots_have_other_names() {
        let dir = tempfile::tempdir().unwrap();
        let (shared, now) = (dir.path().join("shared"), SystemTime::now());
        let run = |root: &str| RunDir::create(&dir.path().join(root), "x", &shared, 0, now).unwrap();
        let (a, b) = (run("a"), run("b"));
        assert!(a.snapshot_dir().starts_with(&shared) && b.snapshot_dir().starts_with(&shared));
        assert_ne!(a.snapshot_dir(), b.snapshot_dir());
        // The folder of runs itself may be the shared one.
        let c = RunDir::create(&shared, "x", &shared, 0, now).unwrap();
        assert_eq!(c.snapshot_dir(), c.path());
    }

    #[test]
    fn nothing_is_left_of_a_run_whose_snapshots_have_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let (root, shared) = (dir.path().join("runs"), dir.path().join("shared"));
        for place in [Path::new("snapshots"), &shared] {
            let error =
                RunDir::create(&root, "x", place, u64::MAX, SystemTime::now()).unwrap_err().to_string();
            assert!(error.starts_with("trainer_config.snapshot_dir: cannot write "), "{error}");
            assert!(error.contains("not enough free space"), "{error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_time_before_1970_is_no_panic() {
        let early = SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1 << 50);
        assert!(local_time(early).year() >= 1969);
    }
}
