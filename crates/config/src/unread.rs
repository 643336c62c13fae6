//! Keys that only the other datasets read. What a user sets there would be ignored in silence: a path to data is
//! refused, the rest is said once.

use crate::choices::Dataset;
use crate::error::{Problem, ProblemKind};
use crate::keys::{Key, index};
use crate::node::Node;
use crate::resolve::Author;
use crate::types::Config;

/// Beside `data_path`: what means nothing to drawn pictures.
const FILES_ONLY: &[&str] = &[
    "data_config.image_col",
    "data_config.caption_col",
    "data_config.train_split_ratio",
    "data_config.alpha",
    "data_config.max_pixels",
];
/// What means nothing to any other source.
const SHAPES_ONLY: &[&str] = &["data_config.train_samples", "data_config.val_samples"];

/// The problem of a path to data that would never be opened. `bad` keys have problems of their own.
pub(crate) fn data_path(
    config: &Config,
    nodes: &[Node],
    author: Author,
    bad: impl Fn(&str) -> bool,
) -> Option<Problem> {
    let key = "data_config.data_path";
    let path = config.data.data_path.as_deref()?;
    let origin = &nodes.get(index(key)?)?.origin;
    if config.data.dataset != Dataset::Shapes || bad("data_config.dataset") || !author.is_user(origin) {
        return None;
    }
    let what = format!(
        "data_path is {path}, but dataset shapes draws its pictures and opens no file: set \
         data_config.dataset=csv to train on yours"
    );
    Some(Problem { origin: origin.clone(), key: Some(key.into()), kind: ProblemKind::Conflict(what) })
}

/// One line on the other such keys among those that the user `set`.
pub(crate) fn notice(config: &Config, set: &[&Key]) -> Option<String> {
    let shapes = config.data.dataset == Dataset::Shapes;
    let (unread, remedy) = match shapes {
        true => (FILES_ONLY, "to train on your own files set data_config.dataset=csv"),
        false => (SHAPES_ONLY, "the source has the rows that it has"),
    };
    let idle: Vec<&str> = set.iter().map(|key| key.path).filter(|path| unread.contains(path)).collect();
    (!idle.is_empty())
        .then(|| format!("without effect on dataset {}: {}; {remedy}", config.data.dataset, idle.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_listed_exists() {
        for path in FILES_ONLY.iter().chain(SHAPES_ONLY) {
            assert!(index(path).is_some(), "{path}");
        }
    }
}
