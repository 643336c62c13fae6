//! The start of a run: data, model, snapshot to go on from, run folder.

use super::bad_steps::BadSteps;
use super::behind::Behind;
use super::clock::Window;
use super::files::Files;
use super::held_out;
use super::step::Under;
use super::tally::Tally;
use super::{Request, Run};
use crate::checkpoint::{self, Origin};
use crate::engine::{Captions, Engine, Setup};
use crate::error::TrainError;
use crate::groups;
use crate::keep;
use crate::memory::{self, Load};
use crate::prepare::{self, Prepared};
use crate::program::Size;
use crate::report::{Event, Padding, Reporter};
use crate::run_dir::RunDir;
use crate::settings::{self, AHEAD, SIDE_BY_SIDE};
use crate::snapshot;
use crate::sources;
use ocelli_config::{Config, EXACT_STEPS, Shuffle};
use ocelli_data::batch::LossMode;
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler, SamplerOptions};
use ocelli_ir::SlotKind;
use ocelli_ir::executor::Executor;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

impl<'a> Run<'a> {
    /// Everything up to the first step. The run folder is made last: a run that cannot start leaves none, nor
    /// does one that has no step left to take.
    pub(super) fn start(request: &'a Request, reporter: &'a mut dyn Reporter) -> Result<Self, TrainError> {
        let c = &request.config;
        let asked = request.resume.is_some() || c.trainer.snapshot_load_strategy.is_some();
        if !asked {
            // A snapshot brings its own vocabulary.
            prepare::look_at_vocabulary(c)?;
        }
        let mut sources = sources::open(c, &request.interrupted, reporter)?;
        let print = sources.fingerprint();
        let origin = checkpoint::origin(c, &request.name, request.resume.as_deref(), &print)?;
        if asked && origin.is_none() {
            reporter.event(&Event::Note("no snapshot of this configuration yet: starting anew"));
        }
        let saved = origin.as_ref().map(checkpoint::tokenizer).transpose()?;
        let caches = keep::keep(c, &mut sources, true)?;
        let data = prepare::prepare(c, sources, saved)?;
        data.notes.iter().for_each(|line| reporter.event(&Event::Note(line)));
        let held_out = held_out::look(&data)?;
        data.warnings.iter().chain(&held_out).for_each(|line| reporter.event(&Event::Warning(line)));
        let sampler = sampler(c, &data)?;
        let resumed = match &origin {
            Some(origin) => place(c, origin, reporter)?,
            None => Resumed::default(),
        };
        let total = total_steps(c, &sampler, &resumed)?;
        let mut engine = engine(request, &data, total)?;
        if let Some(origin) = &origin {
            checkpoint::restore(&mut engine, &origin.path, &origin.snapshot, |_| true)?;
            // The run before may have been killed while it saved.
            origin.path.parent().into_iter().for_each(snapshot::sweep);
        } else if let Some(path) = &c.model.init_from {
            let from = checkpoint::init_from(&mut engine, Path::new(path), &c.model, &*data.tokenizer)?;
            from.refused.iter().for_each(|e| reporter.event(&Event::Warning(&e.to_string())));
            from.notes.iter().for_each(|line| reporter.event(&Event::Note(line)));
        }
        groups::notes(c, engine.spec())?.iter().for_each(|line| reporter.event(&Event::Note(line)));
        let attempts = engine.attempts()?;
        let longest = Size { batch: c.trainer.train_batch_size, text: data.train.lengths().limit() };
        reporter.event(&Event::Note(&engine.describe_step(longest)?));
        let needed = engine.spec().bytes(SlotKind::in_snapshot) as u64;
        let tuned_then = origin.as_ref().map_or("", |origin| &*origin.snapshot.meta.tuning_hash);
        if let Some(line) = other_tuning(tuned_then, &*request.executor) {
            reporter.event(&Event::Note(&format!("changed since: {line}")));
        }
        let files = if resumed.step < total { Some(Files::new(run_dir(request, needed)?)) } else { None };
        if let Some(files) = &files {
            reporter.event(&Event::Note(&format!("run folder: {}", files.dir.path().display())));
        }
        Ok(Run {
            request,
            engine,
            data,
            caches,
            sampler,
            files,
            reporter,
            tally: Tally::default(),
            position: resumed.position,
            epoch: resumed.position.epoch,
            started: resumed.step,
            step: resumed.step,
            known: resumed.step,
            batches: resumed.batches,
            attempts,
            weighted: false,
            behind: Behind::default(),
            total,
            origin: resumed.from,
            saving: None,
            saved: None,
            saved_before: None,
            saved_unix_ms: resumed.saved_unix_ms,
            validated: None,
            loss: (0.0, 0.0),
            last: None,
            bad: BadSteps::default(),
            padding: Padding::default(),
            padding_told: Padding::default(),
            under: Under::default(),
            window: Window::default(),
            whole: Window::default(),
        })
    }

    /// Batches from where the run stands.
    pub(super) fn loader(&self) -> Result<Loader, TrainError> {
        let c = self.config();
        let until_epoch = (!self.sampler.options().endless).then_some(c.trainer.epochs);
        // The published loss counts padding: the batches of a step must have as much as one batch of their rows would.
        let window = if settings::loss_mode(c) == LossMode::Published { c.trainer.grad_accum } else { 1 };
        let options = LoaderOptions { workers: settings::workers(c), ahead: AHEAD, until_epoch, window };
        let (train, sampler) = (self.data.train.clone(), self.sampler.clone());
        Ok(Loader::start_in(train, sampler, self.position, options, self.engine.memory())?)
    }
}

/// Where a run goes on.
#[derive(Default)]
struct Resumed {
    position: Position,
    step: u64,
    batches: u64,
    /// The snapshot.
    from: Option<PathBuf>,
    /// When it was saved.
    saved_unix_ms: u64,
}

/// Tells of the snapshot that the run goes on from, and finds the place in the data.
fn place(c: &Config, origin: &Origin, reporter: &mut dyn Reporter) -> Result<Resumed, TrainError> {
    let (path, meta) = (&origin.path, &origin.snapshot.meta);
    for refused in &origin.refused {
        reporter.event(&Event::Warning(&refused.to_string()));
    }
    for passed in &origin.passed {
        reporter.event(&Event::Note(&format!("passed over: {passed}")));
    }
    let (position, note) =
        checkpoint::position(path, meta, c.trainer.train_batch_size as u64, c.data.bucket)?;
    let line =
        format!("going on from {} (step {}, epoch {})", path.display(), meta.optim_step, position.epoch);
    reporter.event(&Event::Note(&line));
    for line in origin.changed.iter().chain(&note) {
        reporter.event(&Event::Note(&format!("changed since: {line}")));
    }
    Ok(Resumed {
        position,
        step: meta.optim_step,
        batches: meta.data_step,
        from: Some(path.clone()),
        saved_unix_ms: meta.saved_unix_ms,
    })
}

/// What to say of a run that goes on from a snapshot that was made with these choices of kernels.
fn other_tuning(then: &str, executor: &dyn Executor) -> Option<String> {
    (!then.is_empty() && !executor.tuned_as(then)).then(|| {
        let now = executor.tuning().map_or("no measured ones".into(), |now| format!("others ({now})"));
        format!(
            "the snapshot was made with measured kernels ({then}), now there are {now} (trainer_config.autotune): the same \
             numbers but for their last bits"
        )
    })
}

/// The model with its optimiser, at its initial weights, on a device that has the memory for it.
fn engine(request: &Request, data: &Prepared, total: u64) -> Result<Engine, TrainError> {
    let (c, executor) = (&request.config, &request.executor);
    let load = Load {
        vocab: data.tokenizer.vocab_size(),
        text: data.train.lengths().limit(),
        lengths: data.train.lengths().buckets().len(),
        validates: data.validation.is_some(),
    };
    let setup = setup(c, load.vocab, load.text, total)?;
    let planned = memory::foresee(c, load, &setup, &**executor)?;
    let mut engine = Engine::new(executor.clone(), setup, c.trainer.seed)?;
    engine.adopt(planned);
    engine.set_lr(c.trainer.lr)?;
    Ok(engine)
}

/// What the programs of a run of `total` steps are made from, on captions of up to `text_limit` tokens.
///
/// # Errors
/// If no such model can be.
pub fn setup(c: &Config, vocab_size: usize, text_limit: usize, total: u64) -> Result<Setup, TrainError> {
    let model = settings::model(&c.model, vocab_size);
    model.check()?;
    let side_by_side = c.trainer.eval_batch_size.min(SIDE_BY_SIDE);
    Ok(Setup {
        model,
        optimizer: Some(settings::optimizer(c, total)),
        options: settings::passes(c),
        captions: Captions { side_by_side, positions: text_limit + 1 },
    })
}

/// What a new run of a configuration would be made from, and the size of its largest batches: opens the data as
/// [`train`](super::train) does, and goes no further.
///
/// # Errors
/// As [`train`](super::train), before its first step.
pub fn outlook(
    c: &Config,
    interrupted: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<(Setup, Size), TrainError> {
    let data = prepare::prepare(c, sources::open(c, interrupted, reporter)?, None)?;
    let total = total_steps(c, &sampler(c, &data)?, &Resumed::default())?;
    let text = data.train.lengths().limit();
    let setup = setup(c, data.tokenizer.vocab_size(), text, total)?;
    Ok((setup, Size { batch: c.trainer.train_batch_size, text }))
}

/// Steps of the whole run: those taken, and one for each `grad_accum` batches, or fewer at an epoch's end, that are
/// left. More than the schedule can count are refused.
fn total_steps(c: &Config, sampler: &Sampler, resumed: &Resumed) -> Result<u64, TrainError> {
    let (at, epochs, batches) = (resumed.position, c.trainer.epochs, c.trainer.grad_accum as u64);
    let left = |per_epoch: u64| {
        let whole =
            epochs.saturating_sub(at.epoch.saturating_add(1)).saturating_mul(per_epoch.div_ceil(batches));
        let rest = if at.epoch < epochs { per_epoch.saturating_sub(at.batch).div_ceil(batches) } else { 0 };
        whole.saturating_add(rest)
    };
    let by_epochs = sampler.batches_per_epoch().map_or(u64::MAX, |n| resumed.step.saturating_add(left(n)));
    let total = by_epochs.min(c.trainer.max_iters.unwrap_or(u64::MAX));
    if total > EXACT_STEPS {
        let batches = sampler.batches_per_epoch().unwrap_or_default();
        return Err(TrainError::Setting(format!(
            "trainer_config.epochs {epochs}: the run would have {total} steps (batches an epoch: {batches}), more than \
             the {EXACT_STEPS} that the learning rate's schedule can count. Lower it, or set \
             trainer_config.max_iters"
        )));
    }
    Ok(total)
}

fn sampler(c: &Config, data: &Prepared) -> Result<Sampler, TrainError> {
    let drawn_without_end =
        c.data.dataset == ocelli_config::Dataset::Shapes && c.data.train_samples.is_none();
    let options = SamplerOptions {
        seed: c.trainer.seed,
        shuffle: true,
        endless: c.data.endless || drawn_without_end,
        batch_per_rank: c.trainer.train_batch_size,
        rank: 0,
        world: 1,
    };
    let sampler = Sampler::new(data.train_rows.clone(), options)?;
    let sampler = match data.train.blocks().filter(|_| shuffles_in_windows(c, data.train.source().bytes())) {
        Some(blocks) => sampler.with_shuffle_window(&blocks, c.data.shuffle_window),
        None => sampler,
    };
    Ok(if c.data.bucket { sampler.with_buckets(data.train.clone()) } else { sampler })
}

/// Bytes of a source's files up to which its rows are shuffled over the whole split. A fixed number, not this machine's
/// memory: the order of rows depends on seed and data alone.
const SHUFFLED_WHOLE: u64 = 8 << 30;

/// True if rows of a source of so many bytes are shuffled within windows.
fn shuffles_in_windows(c: &Config, bytes: u64) -> bool {
    match c.data.shuffle {
        Shuffle::Auto => bytes > SHUFFLED_WHOLE,
        Shuffle::Full => false,
        Shuffle::Window => true,
    }
}

/// The run's folder, in which snapshots of `needed` bytes can be saved.
fn run_dir(request: &Request, needed: u64) -> Result<RunDir, TrainError> {
    let t = &request.config.trainer;
    let (root, snapshots) = (Path::new(&t.run_dir), Path::new(&t.snapshot_dir));
    let dir = RunDir::create(root, &request.name, snapshots, needed, SystemTime::now())?;
    dir.write_whole("config.yaml", request.text.as_bytes())?;
    Ok(dir)
}
