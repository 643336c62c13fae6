//! Checks that need more than one key, before anything is allocated. Each message holds the numbers it is
//! about; those of the model's sizes stand in `sizes.rs`. A check is left out when one of
//! its keys already has a problem of its own.

use std::path::{Component, Path};

use ocelli_data::source::Encoding;

use crate::choices::{Dataset, Padding, Quoting};
use crate::sizes;
use crate::types::Config;

/// Files in a run folder, beside which snapshots may lie.
const RUN_FILES: [&str; 4] = ["run.json", "config.yaml", "metrics.jsonl", "skipped.jsonl"];
/// One batch of decoded pictures may take this many bytes.
const MAX_BATCH_BYTES: u128 = 16 << 30;

/// One failed check: the keys it is about and what is wrong.
pub(crate) struct Failure {
    /// The first is the one that the message is filed under.
    pub keys: &'static [&'static str],
    pub message: String,
}

/// A check: the keys it reads, and what it finds.
pub(crate) type Check = (&'static [&'static str], fn(&Config) -> Option<String>);

const CHECKS: &[Check] = &[
    (&["model_config.dropout"], |c| below_one("dropout", c.model.dropout)),
    (&["model_config.emb_dropout"], |c| below_one("emb_dropout", c.model.emb_dropout)),
    (&["model_config.blk_dropout"], |c| below_one("blk_dropout", c.model.blk_dropout)),
    (&["trainer_config.beta1"], |c| below_one("beta1", c.trainer.beta1)),
    (&["trainer_config.beta2"], |c| below_one("beta2", c.trainer.beta2)),
    (&["trainer_config.weight_decay"], |c| finite("weight_decay", c.trainer.weight_decay)),
    (&["trainer_config.freeze"], |c| c.trainer.frozen().err()),
    (&["trainer_config.lr_groups"], |c| c.trainer.rates().err()),
    (&["data_config.max_seq_length", "model_config.max_positions"], max_length),
    (&["data_config.padding", "data_config.max_seq_length"], padding),
    (&["data_config.data_path", "data_config.dataset"], data_path),
    (&["data_config.revision", "data_config.dataset"], revision),
    (&["data_config.delimiter"], |c| c.data.divider().err()),
    (&["data_config.delimiter", "data_config.dataset"], delimiter),
    (&["data_config.quoting", "data_config.dataset"], quoting),
    (&["data_config.encoding"], |c| Encoding::named(&c.data.encoding).err()),
    (&["data_config.encoding", "data_config.dataset"], encoding),
    (&["data_config.val_split", "data_config.train_split", "data_config.dataset"], splits),
    (&["trainer_config.snapshot_dir"], snapshot_dir),
    (&["trainer_config.max_iters", "data_config.endless"], endless),
    (&["trainer_config.max_iters", "data_config.train_samples", "data_config.dataset"], endless_shapes),
    (&["trainer_config.train_batch_size", "model_config.img_size"], |c| {
        batch_bytes("train_batch_size", c.trainer.train_batch_size, c.model.img_size)
    }),
    (&["trainer_config.eval_batch_size", "model_config.img_size"], |c| {
        batch_bytes("eval_batch_size", c.trainer.eval_batch_size, c.model.img_size)
    }),
];

/// Every check that fails, except those with a key for which `bad` is true.
pub(crate) fn failures(config: &Config, bad: impl Fn(&str) -> bool) -> Vec<Failure> {
    sizes::CHECKS
        .iter()
        .chain(CHECKS)
        .filter(|(keys, _)| !keys.iter().any(|key| bad(key)))
        .filter_map(|(keys, check)| check(config).map(|message| Failure { keys, message }))
        .collect()
}

/// Programs compute in 32 bits, and with the complement: one that is 0 there freezes a moment or divides by zero.
fn below_one(name: &str, x: f64) -> Option<String> {
    (x as f32 >= 1.0).then(|| format!("{name} {x} is 1 when rounded to 32 bits: make it 0.9999999 or less"))
}

fn finite(name: &str, x: f64) -> Option<String> {
    (!(x as f32).is_finite())
        .then(|| format!("{name} {x:e} is infinite when rounded to 32 bits: make it smaller"))
}

fn max_length(config: &Config) -> Option<String> {
    let length = config.data.max_seq_length?;
    let positions = config.model.max_positions;
    let needed = length.saturating_add(1);
    (length >= positions).then(|| {
        format!(
            "max_seq_length {length} needs {needed} positions (one is the image), but \
             model_config.max_positions is {positions}: set model_config.max_positions={needed}, or at most \
             max_seq_length={}",
            positions.saturating_sub(1)
        )
    })
}

fn padding(config: &Config) -> Option<String> {
    (config.data.padding == Padding::MaxLength && config.data.max_seq_length.is_none())
        .then(|| "padding max_length needs a number in data_config.max_seq_length, which is null".into())
}

fn data_path(config: &Config) -> Option<String> {
    (config.data.dataset != Dataset::Shapes && config.data.data_path.is_none())
        .then(|| format!("data_path is null, but dataset {} is read from there: set it", config.data.dataset))
}

fn revision(config: &Config) -> Option<String> {
    let (dataset, revision) = (config.data.dataset, config.data.revision.as_ref()?);
    (dataset != Dataset::Coco).then(|| {
        format!("revision is {revision}, but dataset {dataset} is not fetched from the hub: leave it null")
    })
}

fn delimiter(config: &Config) -> Option<String> {
    let data = &config.data;
    data.delimiter.as_ref().filter(|_| data.divider().is_ok())?;
    let table = matches!(data.dataset, Dataset::Csv | Dataset::Tsv | Dataset::Folder);
    (!table).then(|| {
        format!("delimiter is set, but dataset {} has no table of text: leave it null", data.dataset)
    })
}

fn quoting(config: &Config) -> Option<String> {
    let (dataset, quoting) = (config.data.dataset, config.data.quoting);
    let table = matches!(dataset, Dataset::Csv | Dataset::Tsv | Dataset::Folder);
    (!table && quoting != Quoting::Minimal)
        .then(|| format!("quoting is {quoting}, but dataset {dataset} has no table of text"))
}

fn encoding(config: &Config) -> Option<String> {
    let data = &config.data;
    let encoding = Encoding::named(&data.encoding).ok()?;
    let text = matches!(data.dataset, Dataset::Csv | Dataset::Tsv | Dataset::Folder);
    (!text && encoding != Encoding::UTF_8)
        .then(|| format!("encoding is {}, but dataset {} reads no text file", data.encoding, data.dataset))
}

fn splits(config: &Config) -> Option<String> {
    let data = &config.data;
    let named =
        matches!(data.dataset, Dataset::Parquet | Dataset::WebDataset | Dataset::Folder | Dataset::Coco);
    if !named {
        let split = data.val_split.as_ref()?;
        return Some(format!(
            "val_split is {split}, but dataset {} has no named splits: leave it null",
            data.dataset
        ));
    }
    (data.val_split.as_ref() == Some(&data.train_split)).then(|| {
        format!(
            "val_split and data_config.train_split are both {}: validation would see training pictures",
            data.train_split
        )
    })
}

/// A run overwrites nothing of another's: what it leaves lies in its own folder.
fn snapshot_dir(config: &Config) -> Option<String> {
    let dir = Path::new(&config.trainer.snapshot_dir);
    let mut within = dir.components().filter(|part| *part != Component::CurDir);
    if let Some(Component::Normal(first)) = within.next()
        && RUN_FILES.iter().any(|file| first == *file)
    {
        let file = first.display();
        return Some(format!("snapshot_dir {}: {file} is a file of the run folder", dir.display()));
    }
    let leaves = dir.is_relative() && dir.components().any(|part| part == Component::ParentDir);
    leaves.then(|| {
        format!(
            "snapshot_dir {} leads out of the run folder, where runs would overwrite each other's snapshots: leave \
             `..` out, or give an absolute path, in which each run gets a folder of its own",
            dir.display()
        )
    })
}

fn endless(config: &Config) -> Option<String> {
    (config.data.endless && config.trainer.max_iters.is_none())
        .then(|| "max_iters is null, but data_config.endless is true: the run would never end".into())
}

fn endless_shapes(config: &Config) -> Option<String> {
    let drawn_without_end = config.data.dataset == Dataset::Shapes && config.data.train_samples.is_none();
    (drawn_without_end && !config.data.endless && config.trainer.max_iters.is_none()).then(|| {
        "max_iters is null, and so is data_config.train_samples: the run would never end; set one of them"
            .into()
    })
}

fn batch_bytes(name: &str, rows: usize, side: usize) -> Option<String> {
    let bytes = rows as u128 * side as u128 * side as u128 * 3;
    (bytes > MAX_BATCH_BYTES).then(|| {
        format!(
            "{name} {rows} pictures of img_size {side} take {bytes} bytes, more than the limit of \
             {MAX_BATCH_BYTES}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_32_bits_cannot_hold_is_refused_with_its_value() {
        let of = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            failures(&config, |_| false).into_iter().map(|f| (f.keys[0], f.message)).collect::<Vec<_>>()
        };
        let beta = of(|c| c.trainer.beta2 = 0.999_999_999);
        assert_eq!(beta.len(), 1, "{beta:?}");
        assert_eq!(beta[0].0, "trainer_config.beta2");
        assert!(beta[0].1.starts_with("beta2 0.999999999 is 1 when"), "{beta:?}");
        assert_eq!(of(|c| c.model.dropout = 0.999_999_99).len(), 1);
        assert_eq!(of(|c| c.trainer.weight_decay = 1e39).len(), 1);
        // The advice in the message holds.
        assert!(of(|c| (c.trainer.beta1, c.trainer.weight_decay) = (0.999_999_9, 1e38)).is_empty());
    }

    #[test]
    fn snapshots_stay_in_the_run_folder_or_go_to_an_absolute_one() {
        let of = |dir: &str| {
            let mut config = Config::default();
            config.trainer.snapshot_dir = dir.into();
            failures(&config, |_| false).len()
        };
        assert_eq!(["snapshots", "a/b", "./a", "..a", "/a/../b"].map(of), [0; 5]);
        assert_eq!(["..", "../a", "a/../../b", "a/.."].map(of), [1; 4]);
        assert_eq!(["run.json", "./metrics.jsonl/a", "a/run.json", "/run.json"].map(of), [1, 1, 0, 0]);
    }
}
