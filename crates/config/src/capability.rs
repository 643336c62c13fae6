//! Keys that do not act, or not yet: a value that asks for a missing capability is an error, a value without
//! effect is said once. Nothing is accepted in silence.

use crate::choices::{AmpDtype, Dataset};
use crate::error::{Problem, ProblemKind};
use crate::keys::{KEYS, Key, Status};
use crate::node::{Data, Node, Origin};
use crate::resolve::Author;
use crate::types::{Config, Switch};
use crate::{typed, unread};

/// A [`ProblemKind::NotYet`] for each value that asks for what is not there yet. Values that do not fit their
/// key are left out: they are reported as such.
pub(crate) fn missing(nodes: &[Node], data: &[Option<Data>]) -> Vec<Problem> {
    KEYS.iter()
        .zip(nodes)
        .zip(data)
        .filter_map(|((key, node), data)| {
            let kind = not_yet(key, data.as_ref()?)?;
            Some(Problem { origin: node.origin.clone(), key: Some(key.path.into()), kind })
        })
        .collect()
}

fn not_yet(key: &Key, data: &Data) -> Option<ProblemKind> {
    let Status::Only(ready) = key.status else { return None };
    let value = typed::to_yaml(&typed::check(key, data).ok()?);
    if ready.contains(&value.as_str()) {
        return None;
    }
    let remedy = match ready {
        [one] => format!("only {one} is"),
        several => format!("only {} are", typed::list(several, "and")),
    };
    Some(ProblemKind::NotYet { value: format!("{} {value}", key.name()), remedy })
}

/// The keys of mixed precision that the user `set` and that wait for another.
fn of_mixed_precision(set: &[&Key]) -> Vec<&'static str> {
    set.iter().map(|k| k.path).filter(|path| path.starts_with("trainer_config.amp_")).collect()
}

/// A line on them, whatever the device.
fn mixed_precision(config: &Config, set: &[&Key]) -> Option<String> {
    let waiting = of_mixed_precision(set);
    (config.trainer.use_amp == Switch::Off && !waiting.is_empty())
        .then(|| format!("without effect while use_amp is false: {}", waiting.join(", ")))
}

/// Lines about keys that the user set and that do not act here.
pub(crate) fn notices(config: &Config, provenance: &[(&'static str, Origin)], author: Author) -> Vec<String> {
    let set = set_by_user(config, provenance, author);
    let mut lines = Vec::new();
    let idle: Vec<String> = set
        .iter()
        .filter_map(|key| match key.status {
            Status::NoEffect(why) => Some(format!("{} ({why})", key.path)),
            _ => None,
        })
        .collect();
    if !idle.is_empty() {
        lines.push(format!("accepted, but without effect: {}", idle.join(", ")));
    }
    lines.extend(unread::notices(config, &set));
    lines.extend(mixed_precision(config, &set));
    lines.extend(pitfalls(config));
    lines
}

/// Lines about keys that the user set and that act on another device than the CPU: to be said when it is used.
pub(crate) fn cpu_notices(
    config: &Config,
    provenance: &[(&'static str, Origin)],
    author: Author,
) -> Vec<String> {
    let set = set_by_user(config, provenance, author);
    let mut lines = Vec::new();
    let gpu: Vec<&str> = set.iter().filter(|k| k.status == Status::Engine).map(|k| k.path).collect();
    if !gpu.is_empty() {
        lines.push(format!("without effect on the CPU (for GPUs only): {}", gpu.join(", ")));
    }
    let trainer = &config.trainer;
    let waiting = of_mixed_precision(&set);
    if trainer.use_amp == Switch::Auto && !waiting.is_empty() {
        let waiting = waiting.join(", ");
        lines.push(format!("without effect on the CPU unless trainer_config.use_amp is true: {waiting}"));
    }
    let amp = set.iter().any(|k| k.path == "trainer_config.use_amp");
    if amp && trainer.use_amp == Switch::On && trainer.amp_dtype == AmpDtype::Auto {
        let why =
            "the CPU trains in 32 bits unless trainer_config.amp_dtype is set; 16 bits are no faster there";
        lines.push(format!("use_amp: {why}"));
    }
    lines
}

/// The keys that the user gave another value than the default.
fn set_by_user(config: &Config, provenance: &[(&'static str, Origin)], author: Author) -> Vec<&'static Key> {
    let values = config.to_value();
    let defaults = Config::default().to_value();
    let changed = |key: &Key| values[key.group()][key.name()] != defaults[key.group()][key.name()];
    let set = KEYS.iter().zip(provenance).filter(|(key, (_, origin))| author.is_user(origin) && changed(key));
    set.map(|(key, _)| key).collect()
}

/// Settings that do not go well together.
fn pitfalls(config: &Config) -> Vec<String> {
    let (trainer, mut lines) = (&config.trainer, Vec::new());
    if let Some(steps) = trainer.max_iters.filter(|steps| *steps < trainer.warmup_iters) {
        let warm_up = trainer.warmup_iters;
        lines.push(format!(
            "max_iters {steps} ends within the {warm_up} steps of warmup_iters: lr is never reached"
        ));
    }
    if let Some(clip) = trainer.clip_grad_norm.filter(|clip| *clip < trainer.eps) {
        lines.push(format!(
            "clip_grad_norm {clip:e} is below eps {:e}: gradients that small hardly move a weight",
            trainer.eps
        ));
    }
    let drawn = config.data.dataset == Dataset::Shapes && config.data.train_samples.is_none();
    if (config.data.endless || drawn) && trainer.snapshot_interval.is_none() {
        let why = "no epoch ends in a run without end: nothing is saved before it ends or is interrupted";
        lines.push(format!("{why}; set trainer_config.snapshot_interval"));
    }
    lines
}
