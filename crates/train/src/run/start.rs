//! The start of a run: data, model, snapshot to go on from, run folder.

use super::clock::Window;
use super::metrics::{Lines, Skips};
use super::{Request, Run};
use crate::checkpoint::{self, Origin};
use crate::engine::Engine;
use crate::error::TrainError;
use crate::prepare::{Prepared, prepare};
use crate::report::{Event, Reporter, Summary};
use crate::run_dir::RunDir;
use crate::settings;
use ocelli_config::Config;
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler, SamplerOptions};
use ocelli_data::tokenizer;
use std::path::Path;
use std::time::SystemTime;

/// Batches read ahead.
pub(super) const AHEAD: usize = 4;

impl<'a> Run<'a> {
    /// Everything up to the first step. The run folder is made last: a run that cannot start leaves none.
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
        let total = total_steps(c, &data);
        let model = settings::model(&c.model, data.tokenizer.vocab_size());
        model.check()?;
        let optimizer = settings::optimizer(c, total);
        let rows = c.trainer.eval_batch_size;
        let mut engine = Engine::new(request.executor.clone(), model, Some(optimizer), c.trainer.seed, rows)?;
        engine.set_lr(c.trainer.lr)?;
        if let (Some(path), None) = (&c.model.init_from, &origin) {
            let line = checkpoint::init_from(&mut engine, Path::new(path))?;
            reporter.event(&Event::Note(&line));
        }
        let resumed = match &origin {
            Some(origin) => go_on(c, &data, &mut engine, origin, reporter)?,
            None => Resumed::default(),
        };
        let dir = run_dir(request)?;
        reporter.event(&Event::Note(&format!("run folder: {}", dir.path().display())));
        Ok(Run {
            request,
            engine,
            data,
            sampler,
            metrics: Lines::new(dir.path().join("metrics.jsonl")),
            skips: Skips::new(dir.path().join("skipped.jsonl")),
            dir,
            reporter,
            position: resumed.position,
            epoch: resumed.position.epoch,
            step: resumed.step,
            batches: resumed.batches,
            flushed: resumed.batches,
            total,
            saved: None,
            validated_at: None,
            loss: (0.0, 0.0),
            last: None,
            window: Window::default(),
            whole: Window::default(),
            summary: Summary::default(),
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
}

fn go_on(
    c: &Config,
    data: &Prepared,
    engine: &mut Engine,
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
        return Err(checkpoint::resume(path, why));
    }
    if meta.source_fingerprint != data.fingerprint {
        let why = "its data is not the data of this run, so its place in them means nothing; to start new training \
                   from its weights, set model_config.init_from to it";
        return Err(checkpoint::resume(path, why.into()));
    }
    checkpoint::restore(engine, path, &origin.snapshot, |_| true)?;
    let (position, note) = checkpoint::position(path, meta, c.trainer.train_batch_size as u64)?;
    let line =
        format!("going on from {} (step {}, epoch {})", path.display(), meta.optim_step, position.epoch);
    reporter.event(&Event::Note(&line));
    if let Some(note) = note {
        reporter.event(&Event::Warning(&note));
    }
    Ok(Resumed { position, step: meta.optim_step, batches: meta.data_step })
}

/// Steps of the whole run.
fn total_steps(c: &Config, data: &Prepared) -> u64 {
    let per_epoch = (data.train_rows.len() as u64).div_ceil(c.trainer.train_batch_size as u64);
    let by_epochs = if endless(c) { u64::MAX } else { per_epoch.saturating_mul(c.trainer.epochs) };
    by_epochs.min(c.trainer.max_iters.unwrap_or(u64::MAX))
}

/// True if the training split is drawn without end.
fn endless(c: &Config) -> bool {
    c.data.endless || (c.data.dataset == ocelli_config::Dataset::Shapes && c.data.train_samples.is_none())
}

fn sampler(c: &Config, data: &Prepared) -> Result<Sampler, TrainError> {
    let options = SamplerOptions {
        seed: c.trainer.seed,
        shuffle: true,
        endless: endless(c),
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
