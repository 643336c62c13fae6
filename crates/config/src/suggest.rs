//! The nearest known name for one that is unknown: what the user most likely meant.

use crate::keys::{GROUPS, KEYS, Key};

/// Below this similarity (0 to 1) a suggestion would mislead more than it helps.
const SIMILAR: f64 = 0.6;

/// A hint for the unknown name `path`, starting with `; `.
pub(crate) fn hint(path: &str) -> String {
    if let Some(key) = KEYS.iter().find(|key| key.path == path) {
        return format!("; write it as `{}:` under `{}:`", key.name(), key.group());
    }
    let group = if path.contains('.') { None } else { best(path, GROUPS.iter().copied(), 0.7) };
    match elsewhere(path).or(group).or_else(|| nearest(path)) {
        Some(name) => format!("; did you mean {name}?"),
        // As in Hydra: `+db=mysql`.
        None if !path.contains('.') => {
            "; config groups are not supported, and `ocelli config --help` lists every key".into()
        }
        None => "; `ocelli config --help` lists every key".into(),
    }
}

/// The nearest of `words` to `word`, if one is near.
pub(crate) fn word(word: &str, words: &[&'static str]) -> Option<&'static str> {
    best(word, words.iter().copied(), SIMILAR)
}

/// The path's last part and what stands before it, with the habits of other tools undone.
fn parts(path: &str) -> (&str, String) {
    let (group, name) = path.rsplit_once('.').unwrap_or(("", path));
    (group, name.to_ascii_lowercase().replace('-', "_"))
}

/// The same name under another group, or without one.
fn elsewhere(path: &str) -> Option<&'static str> {
    let (_, name) = parts(path);
    KEYS.iter().find(|key| key.name() == name).map(|key| key.path)
}

/// The most similar name, with the user's own group before others.
fn nearest(path: &str) -> Option<&'static str> {
    let (group, name) = parts(path);
    let score = |key: &Key| similarity(&name, key.name()) + if key.group() == group { 0.2 } else { 0.0 };
    // `max_by` keeps the last of equals; of equal keys the first in the table is the more usual one.
    KEYS.iter()
        .rev()
        .map(|key| (score(key), key))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(score, _)| *score >= SIMILAR)
        .map(|(_, key)| key.path)
}

fn best(word: &str, words: impl Iterator<Item = &'static str>, least: f64) -> Option<&'static str> {
    words
        .map(|known| (similarity(word, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(score, _)| *score >= least)
        .map(|(_, known)| known)
}

/// Edit distance catches slips of the finger; a shared part catches `batch_size` for `train_batch_size`.
fn similarity(a: &str, b: &str) -> f64 {
    if a.len() > 64 {
        return 0.0;
    }
    let shared = a.len() >= 4 && (b.contains(a) || a.contains(b) && b.len() >= 4);
    let edit = strsim::normalized_damerau_levenshtein(a, b);
    if shared { edit.max(0.75) } else { edit }
}
