//! Runs over drawn pictures on an executor whose reads come late, and whose steps can be made bad.

use ocelli_config::{Config, Request as Asked, load};
use ocelli_cpu::CpuExecutor;
use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_ir::executor::{ExecError, Executor, Input, LaunchTime, Program, Reading, State, Target};
use ocelli_ir::plan::Plan;
use ocelli_ir::{SlotId, StateSpec};
use ocelli_train::TrainError;
use ocelli_train::report::{Event, Reporter, Summary};
use ocelli_train::run::{Request, train};
use serde_json::Value;
use std::any::Any;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A tiny model on drawn pictures, forty steps.
const TINY: &[&str] = &[
    "data_config.dataset=shapes",
    "data_config.val_samples=6",
    "data_config.num_workers=1",
    "model_config.img_size=16",
    "model_config.patch_size=8",
    "model_config.image_embed_dim=16",
    "model_config.num_blks=1",
    "model_config.n_embd=16",
    "model_config.n_head=2",
    "model_config.n_layer=1",
    "trainer_config.train_batch_size=4",
    "trainer_config.eval_batch_size=4",
    "trainer_config.sample_captions=0",
    "trainer_config.snapshot_interval=null",
    "trainer_config.keep_last=null",
    "trainer_config.log_interval=7",
    "trainer_config.max_iters=40",
];

/// The tiny model's, and more.
pub fn overrides(more: &[&str]) -> Vec<String> {
    TINY.iter().chain(more).map(ToString::to_string).collect()
}

/// Their configuration.
pub fn config(overrides: &[String]) -> Config {
    load(&Asked { name: None, path: None, overrides: overrides.to_vec() }).unwrap().config
}

/// The GPU; without one it is said that the test is skipped.
pub fn gpu() -> Option<CudaExecutor> {
    match CudaExecutor::new(CudaOptions::default()) {
        Ok(gpu) => Some(gpu),
        Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
            println!("skipped: no CUDA device ({e})");
            None
        }
        Err(e) => panic!("no CUDA device: {e}"),
    }
}

/// What a run left.
pub struct Ran {
    /// How it ended.
    pub ended: Result<Summary, TrainError>,
    /// Why it failed, without the folder's name, which holds a time.
    pub why: Option<String>,
    /// `metrics.jsonl` without times.
    pub lines: Vec<Value>,
    /// What it told, lines of steps and reports alone: notes of several steps may be one.
    pub told: Vec<String>,
    /// Its snapshots: name, and a hash of all tensors.
    pub snapshots: Vec<(String, u64)>,
}

impl Ran {
    /// Lines of a kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter(move |l| l["kind"] == kind)
    }

    /// The steps that they name.
    pub fn steps(&self, kind: &str) -> Vec<u64> {
        self.of(kind).map(|l| l["step"].as_u64().unwrap()).collect()
    }
}

/// Trains in a folder that is removed again.
pub fn run(executor: &Arc<dyn Executor>, overrides: &[String]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let mut all = overrides.to_vec();
    all.push(format!("trainer_config.run_dir={}", dir.path().display()));
    let request = Request {
        config: config(&all),
        name: "late".into(),
        text: String::new(),
        resume: None,
        executor: executor.clone(),
        interrupted: Arc::new(AtomicBool::new(false)),
    };
    let mut told = Collected(vec![]);
    let ended = train(&request, &mut told);
    let folder = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let why = ended.as_ref().err().map(|e| e.to_string().replace(&folder.display().to_string(), ""));
    Ran {
        ended,
        why,
        lines: lines(&folder.join("metrics.jsonl")),
        told: told.0,
        snapshots: files(&folder.join("snapshots")),
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let parse = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(all) = line.as_object_mut() {
            all.retain(|key, _| !["images_per_s", "ms_per_step", "data_wait", "seconds"].contains(&&**key));
        }
        line
    };
    fs::read_to_string(path).unwrap().lines().map(parse).collect()
}

fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), hash(&e.path())))
        .collect();
    all.sort();
    all
}

fn hash(snapshot: &Path) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    for tensor in &ocelli_train::snapshot::load(snapshot).unwrap().tensors {
        (&tensor.name, &tensor.bytes).hash(&mut hasher);
    }
    hasher.finish()
}

struct Collected(Vec<String>);

impl Reporter for Collected {
    fn event(&mut self, event: &Event<'_>) {
        self.0.extend(match event {
            Event::Step { epoch, step, .. } => Some(format!("step {epoch} {step}")),
            Event::Progress(p) => {
                Some(format!("progress {} {} {} {} {}", p.epoch, p.step, p.loss, p.lr, p.grad_norm))
            }
            Event::Validation { epoch, step, loss, .. } => Some(format!("validation {epoch} {step} {loss}")),
            _ => None,
        });
    }
}

/// Attempts, counted from 1, that something is done to.
#[derive(Clone, Debug, Default)]
pub struct Tricks {
    /// The scale of the loss is raised before them.
    pub overflow: Vec<u64>,
    /// A weight is no number while they run.
    pub bad: Vec<u64>,
}

/// What all parts of a [`Late`] know.
#[derive(Debug)]
struct Shared {
    /// Polls after which what is read is there.
    polls: usize,
    tricks: Tricks,
    attempts: AtomicUsize,
    /// Most attempts that were queued between the beginning and the end of a reading.
    behind: AtomicUsize,
}

/// The CPU, whose reads come late.
pub struct Late {
    cpu: CpuExecutor,
    shared: Arc<Shared>,
}

impl Late {
    /// One whose reads are there after so many polls, or once they are waited for.
    pub fn new(polls: usize, tricks: Tricks) -> Arc<Self> {
        let (attempts, behind) = Default::default();
        let shared = Arc::new(Shared { polls, tricks, attempts, behind });
        Arc::new(Self { cpu: CpuExecutor::new(Some(1)).unwrap(), shared })
    }

    /// Most attempts that were queued between the beginning and the end of a reading.
    pub fn most_behind(&self) -> usize {
        self.shared.behind.load(Ordering::Relaxed)
    }
}

impl Executor for Late {
    fn target(&self) -> &dyn Target {
        self.cpu.target()
    }

    fn new_state(&self, spec: &Arc<StateSpec>, seed: u64) -> Result<Box<dyn State>, ExecError> {
        Ok(Box::new(LateState { inner: self.cpu.new_state(spec, seed)?, shared: self.shared.clone() }))
    }

    fn load(&self, plan: Plan) -> Result<Box<dyn Program>, ExecError> {
        Ok(Box::new(Hurt { inner: self.cpu.load(plan)?, shared: self.shared.clone() }))
    }
}

#[derive(Debug)]
struct LateState {
    inner: Box<dyn State>,
    shared: Arc<Shared>,
}

impl State for LateState {
    fn spec(&self) -> &Arc<StateSpec> {
        self.inner.spec()
    }

    fn read(&self, slot: SlotId) -> Result<Vec<u8>, ExecError> {
        self.inner.read(slot)
    }

    fn begin_read(&self, slot: SlotId) -> Result<Box<dyn Reading>, ExecError> {
        let begun = self.shared.attempts.load(Ordering::Relaxed);
        let (bytes, polls, shared) = (self.inner.read(slot)?, AtomicUsize::new(0), self.shared.clone());
        Ok(Box::new(LateReading { bytes, polls, begun, shared }))
    }

    fn write(&mut self, slot: SlotId, bytes: &[u8]) -> Result<(), ExecError> {
        self.inner.write(slot, bytes)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self.inner.as_any()
    }
}

/// It says that it is not there until it was asked often enough.
#[derive(Debug)]
struct LateReading {
    bytes: Vec<u8>,
    polls: AtomicUsize,
    begun: usize,
    shared: Arc<Shared>,
}

impl Reading for LateReading {
    fn ready(&self) -> Result<bool, ExecError> {
        Ok(self.polls.fetch_add(1, Ordering::Relaxed) >= self.shared.polls)
    }

    fn take(self: Box<Self>) -> Result<Vec<u8>, ExecError> {
        let behind = self.shared.attempts.load(Ordering::Relaxed) - self.begun;
        self.shared.behind.fetch_max(behind, Ordering::Relaxed);
        Ok(self.bytes)
    }
}

/// A program before whose runs the tricks are done.
#[derive(Debug)]
struct Hurt {
    inner: Box<dyn Program>,
    shared: Arc<Shared>,
}

impl Program for Hurt {
    fn plan(&self) -> &Plan {
        self.inner.plan()
    }

    fn run(&mut self, state: &mut dyn State, inputs: &[Input<'_>]) -> Result<(), ExecError> {
        let name = self.plan().name.clone();
        let (batch, apply) = (name.starts_with("train") || name.starts_with("accumulate"), name == "apply");
        if !batch && !apply {
            return self.inner.run(state, inputs);
        }
        let attempt = self.shared.attempts.load(Ordering::Relaxed) as u64 + 1;
        let slot = |name: &str| self.plan().state.find(name);
        if let Some(scale) =
            slot("amp.loss_scale").filter(|_| batch && self.shared.tricks.overflow.contains(&attempt))
        {
            state.write(scale, &2.0_f32.powi(30).to_le_bytes())?;
        }
        let hurt =
            slot("decoder.lm_head.bias").filter(|_| batch && self.shared.tricks.bad.contains(&attempt));
        let whole = hurt.map(|slot| state.read(slot)).transpose()?;
        if let (Some(slot), Some(whole)) = (hurt, &whole) {
            let mut bad = whole.clone();
            bad[..4].copy_from_slice(&f32::NAN.to_le_bytes());
            state.write(slot, &bad)?;
        }
        self.inner.run(state, inputs)?;
        if let (Some(slot), Some(whole)) = (hurt, &whole) {
            state.write(slot, whole)?;
        }
        if !name.starts_with("accumulate") {
            self.shared.attempts.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn run_timed(
        &mut self,
        state: &mut dyn State,
        inputs: &[Input<'_>],
    ) -> Result<Vec<LaunchTime>, ExecError> {
        self.inner.run_timed(state, inputs)
    }

    fn output(&self, index: usize) -> Result<Vec<u8>, ExecError> {
        self.inner.output(index)
    }
}
