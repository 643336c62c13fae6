//! Keys that only other datasets, or the other architecture, read. What a user sets there would be ignored in silence:
//! a path to data is refused, the rest is said once.

use crate::choices::{Architecture, Dataset};
use crate::error::{Problem, ProblemKind};
use crate::keys::{Key, index};
use crate::node::Node;
use crate::resolve::Author;
use crate::types::Config;

/// Keys, the datasets that do not read them, and what a person who set them may want.
type Unread = (&'static [&'static str], &'static [Dataset], &'static str);

/// Beside `data_path`, and beside keys that are refused where they mean nothing (`limits.rs`).
const UNREAD: [Unread; 4] = [
    (
        &[
            "data_config.image_col",
            "data_config.caption_col",
            "data_config.train_split_ratio",
            "data_config.pixels",
            "data_config.exif",
            "data_config.alpha",
            "data_config.max_pixels",
            "data_config.caption_choice",
            "data_config.train_split",
        ],
        &[Dataset::Shapes],
        "to train on your own files set data_config.dataset=csv",
    ),
    (
        &["data_config.caption_choice"],
        &[Dataset::Csv, Dataset::Tsv],
        "each row of a table is a sample; folder and parquet know several captions of a picture",
    ),
    (
        &["data_config.train_split"],
        &[Dataset::Csv, Dataset::Tsv],
        "a table has no named splits, data_config.train_split_ratio divides its rows",
    ),
    (
        &["data_config.train_samples", "data_config.val_samples"],
        &[Dataset::Csv, Dataset::Tsv, Dataset::Parquet, Dataset::WebDataset, Dataset::Folder, Dataset::Coco],
        "the source has the rows that it has",
    ),
];

/// Keys of the model that one architecture alone reads.
const OF_ARCHITECTURE: [(Architecture, &[&str]); 2] = [
    (
        Architecture::Seemore,
        &[
            "model_config.dropout",
            "model_config.emb_dropout",
            "model_config.blk_dropout",
            "model_config.residual",
        ],
    ),
    (
        Architecture::Smol,
        &[
            "model_config.image_n_head",
            "model_config.image_inner",
            "model_config.pixel_shuffle",
            "model_config.n_kv_head",
            "model_config.n_inner",
            "model_config.rope_theta",
            "model_config.tie_weights",
        ],
    ),
];

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

/// Keys that the user `set` and that are among these, one after another; `None` if there are none.
fn idle(set: &[&Key], keys: &[&str]) -> Option<String> {
    let idle: Vec<&str> = set.iter().map(|key| key.path).filter(|path| keys.contains(path)).collect();
    (!idle.is_empty()).then(|| idle.join(", "))
}

/// A line for each reason why keys that the user `set` have no effect on the dataset or the model.
pub(crate) fn notices(config: &Config, set: &[&Key]) -> Vec<String> {
    let dataset = config.data.dataset;
    let of_dataset = UNREAD.iter().filter(|(_, datasets, _)| datasets.contains(&dataset));
    let line = |(keys, _, remedy): &Unread| {
        Some(format!("without effect on dataset {dataset}: {}; {remedy}", idle(set, keys)?))
    };
    let architecture = config.model.architecture;
    let of_others = OF_ARCHITECTURE.iter().filter(|(of, _)| *of != architecture).filter_map(|(of, keys)| {
        let keys = idle(set, keys)?;
        Some(format!("without effect on model_config.architecture={architecture}: {keys}; {of} reads them"))
    });
    of_dataset.filter_map(line).chain(of_others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_listed_exists_and_has_one_reason() {
        let all = UNREAD.iter().flat_map(|(keys, datasets, _)| {
            keys.iter().flat_map(|key| datasets.iter().map(|dataset| (*key, dataset.as_str())))
        });
        let mut seen = std::collections::BTreeSet::new();
        for (key, dataset) in all {
            assert!(index(key).is_some(), "{key}");
            assert!(seen.insert((key, dataset)), "{key} {dataset}");
        }
        OF_ARCHITECTURE
            .iter()
            .flat_map(|(_, keys)| *keys)
            .for_each(|key| assert!(index(key).is_some(), "{key}"));
    }
}
