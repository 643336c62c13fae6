//! What groups of weights come to in a model: every pattern must fit something, and the run says what.

use crate::error::TrainError;
use ocelli_config::Config;
use ocelli_data::text::count;
use ocelli_ir::{Slot, SlotKind, StateSpec};
use std::collections::BTreeSet;

/// A line on each group of weights that is not trained or has a rate of its own.
///
/// # Errors
/// If a pattern fits no weight, or one with a rate none that is left to it.
pub fn notes(c: &Config, state: &StateSpec) -> Result<Vec<String>, TrainError> {
    let weights: Vec<&Slot> =
        state.iter().map(|(_, s)| s).filter(|s| s.kind == SlotKind::Parameter).collect();
    let (frozen, rates) = (c.trainer.frozen().unwrap_or_default(), c.trainer.rates().unwrap_or_default());
    let keys = frozen.iter().map(|p| ("freeze", p)).chain(rates.iter().map(|(p, _)| ("lr_groups", p)));
    for (key, pattern) in keys {
        if !weights.iter().any(|w| pattern.matches(&w.name)) {
            let parts: BTreeSet<&str> = weights.iter().filter_map(|w| w.name.split('.').next()).collect();
            let parts: Vec<String> = parts.iter().map(|part| format!("{part}.*")).collect();
            return Err(TrainError::Setting(format!(
                "trainer_config.{key}: no weight's name fits '{}'. The parts of this model are {}",
                pattern.text(),
                parts.join(", ")
            )));
        }
    }
    let optimizer = crate::settings::optimizer(c, 1);
    let mut lines = Vec::new();
    let mut line = |what: String, of: Vec<&&Slot>| {
        let numbers: usize = of.iter().map(|w| w.ty.shape.numel()).sum();
        if !of.is_empty() {
            lines.push(format!(
                "{what}: {} of {} ({numbers} numbers)",
                of.len(),
                count(weights.len(), "tensor")
            ));
        }
    };
    line("not trained".into(), weights.iter().filter(|w| optimizer.rate(&w.name).is_none()).collect());
    // Groups are those of `freeze`, then those of `lr_groups`.
    for (group, (pattern, lr)) in (frozen.len()..).zip(&rates) {
        let first = |w: &Slot| optimizer.groups.iter().position(|g| g.pattern.matches(&w.name));
        let of: Vec<&&Slot> = weights.iter().filter(|w| first(w) == Some(group)).collect();
        if of.is_empty() {
            let before = weights.iter().filter(|w| pattern.matches(&w.name)).filter_map(|w| first(w));
            let before: BTreeSet<&str> = before.map(|g| optimizer.groups[g].pattern.text()).collect();
            return Err(TrainError::Setting(format!(
                "trainer_config.lr_groups: '{}' acts on no weight: all that it fits are taken before it, by {}. The first \
                 pattern that fits counts, and trainer_config.freeze comes before all: put the narrower one first",
                pattern.text(),
                before.iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(", ")
            )));
        }
        line(format!("learning rate {lr} for {}", pattern.text()), of);
    }
    Ok(lines)
}
