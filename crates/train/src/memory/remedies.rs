//! What to change so that a run fits: each change is tried by planning the run with it.

use super::{Load, gb, needs};
use crate::error::TrainError;
use ocelli_config::{AmpDtype, Config, Switch};
use ocelli_ir::DType;
use ocelli_ir::executor::Target;
use std::fmt;
use std::time::{Duration, Instant};

/// Time that looking for the largest batch may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Numbers of batches a step that are tried.
const TRIED: usize = 8;

/// One change that is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Keys and values, as on the command line.
    pub overrides: String,
    /// What it keeps.
    pub note: &'static str,
    /// What the run takes then, in bytes.
    pub bytes: usize,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}{} in all)", self.overrides, self.note, gb(self.bytes))
    }
}

/// The configuration with batches of at most `rows` rows.
fn at_most(c: &Config, rows: usize) -> Config {
    let mut c = c.clone();
    let t = &mut c.trainer;
    (t.train_batch_size, t.eval_batch_size) = (t.train_batch_size.min(rows), t.eval_batch_size.min(rows));
    c
}

/// The largest number of rows below `most`, which does not fit, that does; 0 if none. True beside it if the time to look was
/// over: a larger one may fit.
pub fn largest(
    most: usize,
    mut fits: impl FnMut(usize) -> Result<bool, TrainError>,
) -> Result<(usize, bool), TrainError> {
    let until = Instant::now() + PATIENCE;
    // Fits, and does not.
    let (mut low, mut high) = (0, most);
    while high - low > 1 && Instant::now() < until {
        let rows = low.midpoint(high);
        (low, high) = if fits(rows)? { (rows, high) } else { (low, rows) };
    }
    Ok((low, high - low > 1))
}

/// The largest batch that fits into `free` bytes, whether a larger one may, and all that is enough.
pub fn find(
    c: &Config,
    load: Load,
    target: &dyn Target,
    free: usize,
) -> Result<(usize, bool, Vec<Remedy>), TrainError> {
    let bytes = |c: &Config| needs(c, load, target).map(|needs| needs.bytes());
    let t = &c.trainer;
    let most = t.train_batch_size.max(t.eval_batch_size);
    let (low, at_least) = largest(most, |rows| Ok(bytes(&at_most(c, rows))? <= free))?;
    let mut remedies = Vec::new();
    let mut offer = |overrides: String, note, c: &Config| -> Result<bool, TrainError> {
        let bytes = bytes(c)?;
        if bytes <= free {
            remedies.push(Remedy { overrides, note, bytes });
        }
        Ok(bytes <= free)
    };
    if low > 0 {
        let smaller = at_most(c, low);
        offer(batches(c, &smaller), "", &smaller)?;
    }
    if low > 0 && low < t.train_batch_size {
        accumulated(c, low, &mut offer)?;
    }
    if !t.recompute {
        let mut c = c.clone();
        c.trainer.recompute = true;
        offer("trainer_config.recompute=True".into(), "the same batch, ", &c)?;
    }
    if t.use_amp != Switch::On
        && let Some(half) = target.half()
    {
        let mut c = c.clone();
        c.trainer.use_amp = Switch::On;
        c.trainer.amp_dtype = if half == DType::F16 { AmpDtype::Fp16 } else { AmpDtype::Bf16 };
        offer("trainer_config.use_amp=True".into(), "the same batch, ", &c)?;
    }
    Ok((low, at_least, remedies))
}

/// The keys that differ.
fn batches(c: &Config, smaller: &Config) -> String {
    let (old, new) = (&c.trainer, &smaller.trainer);
    let keys = [
        ("trainer_config.train_batch_size", old.train_batch_size, new.train_batch_size),
        ("trainer_config.eval_batch_size", old.eval_batch_size, new.eval_batch_size),
    ];
    let changed = keys.into_iter().filter(|(_, old, new)| old != new);
    changed.map(|(key, _, new)| format!("{key}={new}")).collect::<Vec<_>>().join(" ")
}

/// As many rows a step in several smaller batches, which takes room for sums of gradients.
fn accumulated(
    c: &Config,
    rows: usize,
    offer: &mut dyn FnMut(String, &'static str, &Config) -> Result<bool, TrainError>,
) -> Result<(), TrainError> {
    let batch = c.trainer.train_batch_size;
    let divides = |times: &usize| batch.is_multiple_of(*times);
    for times in (batch.div_ceil(rows)..=batch).filter(divides).take(TRIED) {
        let mut smaller = at_most(c, rows);
        smaller.trainer.train_batch_size = batch / times;
        smaller.trainer.grad_accum *= times;
        let keys =
            format!("{} trainer_config.grad_accum={}", batches(c, &smaller), smaller.trainer.grad_accum);
        if offer(keys, "as many rows a step, ", &smaller)? {
            return Ok(());
        }
    }
    Ok(())
}
