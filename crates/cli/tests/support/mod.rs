//! Drives the real binary in a folder of its own.
#![allow(dead_code)] // each test binary uses its part

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Overrides that make a model tiny: a step takes about a millisecond.
pub const TINY: &[&str] = &[
    "model_config.img_size=16",
    "model_config.patch_size=8",
    "model_config.image_embed_dim=16",
    "model_config.num_blks=1",
    "model_config.n_embd=16",
    "model_config.n_head=2",
    "model_config.n_layer=1",
    "trainer_config.train_batch_size=4",
    "trainer_config.eval_batch_size=4",
    "data_config.val_samples=6",
    "trainer_config.sample_captions=2",
    "trainer_config.snapshot_interval=null",
    "trainer_config.keep_last=null",
];

/// The binary at work in an empty folder.
pub struct Bench {
    pub dir: TempDir,
}

/// What a command said.
pub struct Said {
    pub ok: bool,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ocelli"));
        command.current_dir(self.dir.path()).args(args).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    /// Runs with standard output, or standard error, a pipe that nobody reads.
    pub fn unread(&self, args: &[&str], stderr: bool) -> Said {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = if stderr { command.stderr(writer) } else { command.stdout(writer) }.spawn().unwrap();
        // It holds the writing end.
        drop(command);
        said(child.wait_with_output().unwrap())
    }

    /// `ocelli train` with a tiny model.
    pub fn train(&self, args: &[&str]) -> Said {
        self.run(&tiny(args))
    }

    /// The same, left running.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(&tiny(args)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Interrupts a run, as Ctrl-C does, once it has logged a step, and waits for its end.
    pub fn interrupt(&self, child: Child) -> Said {
        let deadline = Instant::now() + Duration::from_secs(60);
        let started = || {
            std::fs::read_dir(self.path("runs"))
                .is_ok_and(|mut d| d.any(|r| r.is_ok_and(|r| r.path().join("metrics.jsonl").exists())))
        };
        while !started() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        said(child.wait_with_output().unwrap())
    }

    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(self.dir.path(), &mut found);
        found.retain(|p| p.to_string_lossy().ends_with("_snapshot.safetensors"));
        found.sort_by_key(|p| std::fs::metadata(p).and_then(|m| m.modified()).unwrap());
        found
    }

    /// The lines of a log of the only run folder; none if it is not there.
    pub fn log(&self, name: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.run_folder().join(name)).unwrap_or_default();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    /// The last line of the only run's metrics, which sums it up.
    #[track_caller]
    pub fn summary(&self) -> serde_json::Value {
        let last = self.log("metrics.jsonl").pop().unwrap();
        assert_eq!(last["kind"], "summary", "{last}");
        last
    }

    /// The only run folder.
    pub fn run_folder(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> =
            std::fs::read_dir(self.path("runs")).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }
}

pub fn tiny<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["train"], TINY, args].concat()
}

pub fn said(output: Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let said = Said {
        ok: output.status.success(),
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    assert!(!said.err.contains("panicked") && !said.err.contains("a defect of ocelli"), "{}", said.err);
    said
}

impl Said {
    /// Demands success.
    #[track_caller]
    pub fn done(self) -> Self {
        assert!(self.ok, "out:\n{}\nerr:\n{}", self.out, self.err);
        self
    }

    /// Demands failure with exit code 1 and every part in the message.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(1), "out:\n{}\nerr:\n{}", self.out, self.err);
        self.mentions(parts)
    }

    #[track_caller]
    pub fn mentions(self, parts: &[&str]) -> Self {
        let all = format!("{}\n{}", self.out, self.err);
        parts.iter().for_each(|p| assert!(all.contains(p), "no '{p}' in:\n{all}"));
        self
    }
}

/// A CSV file with `good` good rows and `bad` bad ones, small pictures; the arguments that train on all of it.
pub fn csv(b: &Bench, good: usize, bad: usize) -> Vec<&'static str> {
    let captions = include_str!("../../../data/tests/cases/08_captions/captions.csv");
    let (_, row) = captions.lines().nth(1).unwrap().split_once(',').unwrap();
    rows(b, &[&*vec![row; good], &*vec!["AAAA,a bad row"; bad]].concat())
}

/// A CSV file of these rows; the arguments that train on all of it.
pub fn rows(b: &Bench, rows: &[&str]) -> Vec<&'static str> {
    let rows: Vec<String> = rows.iter().enumerate().map(|(i, row)| unlike(row, i)).collect();
    std::fs::write(b.path("rows.csv"), format!("b64string_images,caption\n{}\n", rows.join("\n"))).unwrap();
    vec![
        "--config-name",
        "csv_train",
        "data_config.data_path=rows.csv",
        "data_config.vocab_path=auto",
        "data_config.train_split_ratio=1",
    ]
}

/// A row that begins with base64, with bytes behind the picture unlike those of any other `i`: rows of one picture are
/// never divided.
pub fn unlike(row: &str, i: usize) -> String {
    let (field, rest) = row.split_at(row.find([',', '\t']).unwrap_or(row.len()));
    match STANDARD.decode(field) {
        Ok(bytes) if i > 0 => format!("{}{rest}", STANDARD.encode([&bytes[..], &vec![b'.'; i]].concat())),
        _ => row.into(),
    }
}

/// The parts of a command line, one after another.
pub fn with<'a>(base: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [base, more].concat()
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() { walk(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

/// Multiplies a tensor of a file.
pub fn enlarge(path: &Path, name: &str, factor: f32) {
    use safetensors::SafeTensors;
    use safetensors::tensor::{TensorView, serialize};
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors: Vec<_> = file
        .iter()
        .map(|(n, t)| {
            let by = if n == name { factor } else { 1.0 };
            let numbers = t.data().chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap()) * by);
            (
                n.to_string(),
                t.dtype(),
                t.shape().to_vec(),
                numbers.flat_map(f32::to_le_bytes).collect::<Vec<u8>>(),
            )
        })
        .collect();
    let views = tensors.iter().map(|(n, d, s, data)| (n, TensorView::new(*d, s.clone(), data).unwrap()));
    let out = serialize(views, None).unwrap();
    std::fs::write(path, out).unwrap();
}

/// The tensors of a snapshot, by name.
pub fn tensors(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.iter().map(|(name, t)| (name.to_string(), t.data().to_vec())).collect()
}
