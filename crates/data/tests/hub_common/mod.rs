//! A cache in a folder of its own, and what a fetch from a stand-in tells.
#![allow(dead_code)] // each test binary uses its part

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ocelli_data::hub::{DataSet, Fetched, HubError, Settings, Told, fetch};
use ocelli_data::source::SplitNames;
use ocelli_testkit::hub::{COMMIT, Repository, Server};
use tempfile::TempDir;

/// The data set of all tests.
pub const ID: &str = "RIW/small-coco";
pub const TRAIN: &str = "data/train-00000-of-00002.parquet";
pub const TRAIN_2: &str = "data/train-00001-of-00002.parquet";
pub const VALIDATION: &str = "data/validation-00000-of-00001.parquet";

/// Content that differs from byte to byte and from seed to seed.
pub fn content(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31).wrapping_add((i >> 8) as u8) ^ seed).collect()
}

/// A data set as the hub has many.
pub fn repository() -> Repository {
    Repository::new(ID)
        .with("README.md", "# small")
        .with(TRAIN, content(1, 300_000))
        .with(TRAIN_2, content(2, 200_000))
        .with(VALIDATION, content(3, 1_000))
        .with("data/test-00000-of-00001.parquet", content(4, 50))
}

/// Serves a data set.
pub fn serve(repository: Repository) -> Server {
    Server::start(move |asked| repository.answer(asked))
}

/// An empty cache.
pub struct Bench {
    pub dir: TempDir,
    pub settings: Settings,
    pub set: DataSet,
    pub stop: AtomicBool,
}

/// What a fetch said.
pub struct Said {
    pub result: Result<Fetched, HubError>,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
    /// Name, done, total.
    pub progress: Vec<(String, u64, u64)>,
}

impl Bench {
    pub fn new(endpoint: &str) -> Self {
        Self::with(endpoint, &[])
    }

    /// With more variables.
    pub fn with(endpoint: &str, variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        let all = [&[("HF_HOME", home), ("HF_ENDPOINT", endpoint)], variables].concat();
        let get = |name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        let mut settings = Settings::read(&get).unwrap();
        settings.first_wait = Duration::from_millis(1);
        settings.timeout = Duration::from_secs(5);
        let set = DataSet::new(ID, None).unwrap();
        Self { dir, settings, set, stop: AtomicBool::new(false) }
    }

    pub fn fetch(&self) -> Said {
        let (mut notes, mut warnings, mut progress) = (Vec::new(), Vec::new(), Vec::new());
        let result = self.fetch_with(&mut |told| match told {
            Told::Note(line) => notes.push(line.to_string()),
            Told::Warning(line) => warnings.push(line.to_string()),
            Told::Progress { name, done, total } => progress.push((name.to_string(), done, total)),
            _ => {}
        });
        Said { result, notes, warnings, progress }
    }

    /// A fetch that tells as it goes.
    pub fn fetch_with(&self, tell: &mut dyn FnMut(Told<'_>)) -> Result<Fetched, HubError> {
        fetch(&self.set, &SplitNames::default(), &self.settings, &self.stop, tell)
    }

    /// The folder of the data set.
    pub fn folder(&self) -> PathBuf {
        self.settings.cache.join("datasets--RIW--small-coco")
    }

    pub fn snapshot(&self, name: &str) -> PathBuf {
        self.folder().join("snapshots").join(COMMIT).join(name)
    }

    /// The paths under `blobs`.
    pub fn blobs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder().join("blobs")).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

impl Said {
    #[track_caller]
    pub fn done(self) -> Fetched {
        self.result.unwrap()
    }

    /// Demands an error with every part in its message.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> String {
        let message = self.result.unwrap_err().to_string();
        parts.iter().for_each(|part| assert!(message.contains(part), "no '{part}' in: {message}"));
        message
    }
}

/// All that asks: `GET /path`.
pub fn asked(server: &Server) -> Vec<String> {
    server.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
}

pub fn read(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// All files under a folder, with their sizes.
pub fn sizes(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sizes(&path));
        } else {
            found.push((path.clone(), std::fs::metadata(&path).map_or(0, |m| m.len())));
        }
    }
    found.sort();
    found
}
