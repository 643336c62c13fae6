//! The start of a run: data, model, snapshot to go on from, run folder.

use super::clock::Window;
use super::files::Files;
use super::tally::Tally;
use super::{Request, Run};
use crate::changes::changes;
use crate::checkpoint::{self, Origin};
use crate::engine::{Captions, Engine};
use crate::error::TrainError;
use crate::prepare::{Prepared, prepare};
use crate::program::Size;
use crate::report::{Event, Reporter};
use crate::run_dir::RunDir;
use crate::settings;
use ocelli_config::Config;
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler, SamplerOptions};
use ocelli_data::tokenizer;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Pictures captioned side by side at the end of a run, at most.
const SIDE_BY_SIDE: usize = 16;

/// Batches read ahead.
pub(super) const AHEAD: usize = 4;

impl<'a> Run<'a> {
    /// Everything up to the first step. The run folder is made last: a run that cannot start leaves none, nor
    /// does one that has no step left to take.
    pub(super) fn start(request: &'a Request, reporter: &'a mut dyn Reporter) -> Result<Self, TrainError> {
        let c = &request.config;
        let origin = checkpoint::origin(c, &request.name, request.resume.as_deref())?;
        let asked = request.resume.is_some() || c.trainer.snapshot_load_strategy.is_some();
        if asked && origin.is_none() {
            reporter.event(&Event::Note("no snapshot of this configuration yet: starting anew"));
        }
        let saved = origin.as_ref().map(|o| tokenizer::from_json(&o.snapshot.meta.tokenizer)).transpose()?;
        let data = prepare(c, saved)?;
        data.notes.iter().for_each(|line| reporter.event(&Event::Note(line)));
        let sampler = sampler(c, &data)?;
        let resumed = match &origin {
            Some(origin) => place(c, &data, origin, reporter)?,
            None => Resumed::default(),
        };
        let total = total_steps(c, &sampler, &resumed);
        let mut engine = engine(request, &data, total)?;
        if let Some(origin) = &origin {
            checkpoint::restore(&mut engine, &origin.path, &origin.snapshot, |_| true)?;
        } else if let Some(path) = &c.model.init_from {
            let line = checkpoint::init_from(&mut engine, Path::new(path), &*data.tokenizer)?;
            reporter.event(&Event::Note(&line));
        }
        let longest = Size { batch: c.trainer.train_batch_size, text: data.train.lengths().limit() };
        reporter.event(&Event::Note(&engine.describe_step(longest)?));
        let files = if resumed.step < total { Some(Files::new(run_dir(request)?)) } else { None };
        if let Some(files) = &files {
            reporter.event(&Event::Note(&format!("run folder: {}", files.dir.path().display())));
        }
        Ok(Run {
            request,
            engine,
            data,
            sampler,
            files,
            reporter,
            tally: Tally::default(),
            position: resumed.position,
            epoch: resumed.position.epoch,
            started: resumed.step,
            step: resumed.step,
            batches: resumed.batches,
            flushed: resumed.batches,
            total,
            origin: resumed.from,
            saved: None,
            validated: None,
            loss: (0.0, 0.0),
            last: None,
            window: Window::default(),
            whole: Window::default(),
        })
    }

    /// Batches from where the run stands.
    pub(super) fn loader(&self) -> Result<Loader, TrainError> {
        let c = self.config();
        let until_epoch = (!self.sampler.options().endless).then_some(c.trainer.epochs);
        let options = LoaderOptions { workers: c.data.num_workers, ahead: AHEAD, until_epoch };
        Ok(Loader::start(self.data.train.clone(), self.sampler.clone(), self.position, options)?)
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
}

/// Checks that a snapshot goes with the configuration and the data, and finds the place in the data.
fn place(
    c: &Config,
    data: &Prepared,
    origin: &Origin,
    reporter: &mut dyn Reporter,
) -> Result<Resumed, TrainError> {
    let (path, meta) = (&origin.path, &origin.snapshot.meta);
    for refused in &origin.refused {
        reporter.event(&Event::Warning(&refused.to_string()));
    }
    // Before the data: drawn pictures follow the seed.
    if meta.seed != c.trainer.seed {
        let why =
            format!("it was made with trainer_config.seed={}, this run has {}", meta.seed, c.trainer.seed);
        return Err(checkpoint::refused(path, why));
    }
    let before = ocelli_config::load_stored(&path.display().to_string(), &meta.config, &[])?.config;
    let changed = changes(&before, c);
    if !changed.refused.is_empty() {
        let why = format!(
            "these settings would make it another model or other data:\n  {}\nTo start new training from its \
             weights, set model_config.init_from to it",
            changed.refused.join("\n  ")
        );
        return Err(checkpoint::refused(path, why));
    }
    if meta.source_fingerprint != data.fingerprint {
        let why = "its data is not the data of this run, so its place in them means nothing; to start new training \
                   from its weights, set model_config.init_from to it";
        return Err(checkpoint::refused(path, why.into()));
    }
    let (position, note) = checkpoint::position(path, meta, c.trainer.train_batch_size as u64)?;
    let line =
        format!("going on from {} (step {}, epoch {})", path.display(), meta.optim_step, position.epoch);
    reporter.event(&Event::Note(&line));
    for line in changed.noted.iter().chain(&note) {
        reporter.event(&Event::Note(&format!("changed since: {line}")));
    }
    Ok(Resumed { position, step: meta.optim_step, batches: meta.data_step, from: Some(path.clone()) })
}

/// The model with its optimiser, at its initial weights.
fn engine(request: &Request, data: &Prepared, total: u64) -> Result<Engine, TrainError> {
    let c = &request.config;
    let model = settings::model(&c.model, data.tokenizer.vocab_size());
    model.check()?;
    let captions = Captions {
        side_by_side: c.trainer.eval_batch_size.min(SIDE_BY_SIDE),
        positions: data.train.lengths().limit() + 1,
    };
    let optimizer = settings::optimizer(c, total);
    let mut engine = Engine::new(request.executor.clone(), model, Some(optimizer), c.trainer.seed, captions)?;
    engine.set_lr(c.trainer.lr)?;
    Ok(engine)
}

/// Steps of the whole run: those taken, and one for each batch that is left.
fn total_steps(c: &Config, sampler: &Sampler, resumed: &Resumed) -> u64 {
    let (at, epochs) = (resumed.position, c.trainer.epochs);
    let left = |per_epoch| epochs.saturating_sub(at.epoch).saturating_mul(per_epoch).saturating_sub(at.batch);
    let by_epochs = sampler.batches_per_epoch().map_or(u64::MAX, |n| resumed.step.saturating_add(left(n)));
    by_epochs.min(c.trainer.max_iters.unwrap_or(u64::MAX))
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
    Ok(Sampler::new(data.train_rows.clone(), options)?)
}

fn run_dir(request: &Request) -> Result<RunDir, TrainError> {
    let t = &request.config.trainer;
    let (root, snapshots) = (Path::new(&t.run_dir), Path::new(&t.snapshot_dir));
    let dir = RunDir::create(root, &request.name, snapshots, SystemTime::now())?;
    dir.write_whole("config.yaml", request.text.as_bytes())?;
    Ok(dir)
}
