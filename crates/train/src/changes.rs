//! What changed in the configuration since a snapshot was made: some changes would make it another model or other
//! data, and are refused; others are allowed and said.

use crate::snapshot::Meta;
use ocelli_config::{Config, ConfigErrors, Dataset};
use serde_json::Value;

/// Keys of the model that may change: they shape no weight and no meaning of one.
const FREE_MODEL: &[&str] =
    &["init_from", "dropout", "emb_dropout", "blk_dropout", "block_size", "head_size"];
/// Keys of the data that decide what a position in the stream or a target means.
const FIXED_DATA: &[&str] = &[
    "dataset",
    "loss",
    "train_split_ratio",
    "train_split",
    "val_split",
    "caption_choice",
    "endless",
    "bucket",
    "shuffle",
    "shuffle_window",
    "train_samples",
    "pixels",
    "exif",
    "alpha",
];
/// Keys of the data that do not decide what its rows are.
const NO_ROWS: &[&str] = &[
    "pad_token",
    "vocab_path",
    "padding",
    "max_seq_length",
    "num_workers",
    "pinned_memory",
    "cache",
    "val_samples",
    "unknown",
    "max_skip_ratio",
    "max_pixels",
];
/// Keys of the trainer that change what is learnt from here on.
const TRAINING: &[&str] = &[
    "lr",
    "lr_schedule",
    "warmup_iters",
    "optimizer",
    "beta1",
    "beta2",
    "eps",
    "weight_decay",
    "clip_grad_norm",
    "lr_groups",
    "use_amp",
    "amp_dtype",
    "amp_residual",
    "train_batch_size",
    "grad_accum",
    "max_iters",
    "epochs",
];

/// A value that leaves the choice to the device.
const AUTO: &str = "auto";

/// Changes since a snapshot, each as `group.key was A, is B`.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// The snapshot cannot go on with these.
    pub refused: Vec<String>,
    /// These are worth a line.
    pub noted: Vec<String>,
}

impl Changes {
    /// What changed since a snapshot was made: in the configuration, and in the data, whose fingerprint is `data` now.
    ///
    /// # Errors
    /// If the snapshot's configuration cannot be read.
    pub fn since(meta: &Meta, now: &Config, data: &str) -> Result<Self, ConfigErrors> {
        let before = ocelli_config::load_stored("its configuration", &meta.config, &[])?.config;
        let mut found = changes(&before, now);
        let same_seed = meta.seed == now.trainer.seed;
        if !same_seed {
            let line = format!("trainer_config.seed was {}, is {}", meta.seed, now.trainer.seed);
            found.refused.insert(0, line);
        }
        if meta.source_fingerprint != data {
            // Keys that may change as long as the rows stay what they were.
            let (rows, noted) = found.noted.into_iter().partition(|line| decides_rows(line));
            found.noted = noted;
            found.refused.extend::<Vec<String>>(rows);
            // Drawn pictures follow the seed.
            let by_seed = now.data.dataset == Dataset::Shapes && !same_seed;
            let by_key = found.refused.iter().any(|line| decides_rows(line));
            if !by_seed && !by_key {
                found.refused.push(contents(now));
            }
        }
        Ok(found)
    }
}

/// True if a line is about a key that decides what the rows are.
fn decides_rows(line: &str) -> bool {
    let key = line.strip_prefix("data_config.").and_then(|rest| rest.split(' ').next());
    key.is_some_and(|key| !NO_ROWS.contains(&key))
}

/// The same place holds other rows.
fn contents(now: &Config) -> String {
    match now.data.data_path.as_deref().filter(|_| now.data.dataset != Dataset::Shapes) {
        Some(path) => format!("the contents of {path} changed"),
        None => "the drawn pictures changed: another version of Ocelli draws others".into(),
    }
}

/// The keys that make another model of the same weights, or ask for other weights: none may change while a trained model
/// is used.
pub(crate) fn of_the_model(trained: &Config, now: &Config) -> Vec<String> {
    let refused = changes(trained, now).refused;
    refused.into_iter().filter(|line| line.starts_with("model_config.")).collect()
}

/// Compares two configurations.
fn changes(before: &Config, now: &Config) -> Changes {
    let (before, now) = (json(before), json(now));
    let mut out = Changes::default();
    for (group, keys) in now.as_object().into_iter().flatten() {
        for (key, value) in keys.as_object().into_iter().flatten() {
            let old = &before[group][key];
            // What was left to the device then is settled now: nobody changed it.
            if old == value || (group == "trainer_config" && old == AUTO) {
                continue;
            }
            let line = format!("{group}.{key} was {old}, is {value}");
            match group.as_str() {
                "model_config" if !FREE_MODEL.contains(&key.as_str()) => out.refused.push(line),
                "data_config" if FIXED_DATA.contains(&key.as_str()) => out.refused.push(line),
                "trainer_config" if key == "freeze" => out.refused.push(line),
                "trainer_config" if !TRAINING.contains(&key.as_str()) => {}
                _ => out.noted.push(line),
            }
        }
    }
    out
}

fn json(config: &Config) -> Value {
    serde_json::from_str(&config.to_json()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_refused_said_or_of_no_account() {
        let before = Config::default();
        let mut now = before.clone();
        assert_eq!(changes(&before, &now), Changes::default());
        now.model.n_head *= 2;
        now.data.train_split_ratio = 0.5;
        now.model.dropout = 0.25;
        now.trainer.beta1 = 0.8;
        now.trainer.log_interval += 1;
        now.trainer.threads = Some(1);
        let found = changes(&before, &now);
        let has = |list: &[String], key: &str| list.iter().any(|l| l.starts_with(key));
        assert_eq!((found.refused.len(), found.noted.len()), (2, 2), "{found:?}");
        assert!(
            has(&found.refused, "model_config.n_head was ")
                && has(&found.refused, "data_config.train_split_ratio")
        );
        assert!(has(&found.noted, "model_config.dropout was ") && has(&found.noted, "trainer_config.beta1"));
    }

    #[test]
    fn what_was_left_to_the_device_is_no_change() {
        let before = Config::default();
        assert_eq!(before.trainer.use_amp, ocelli_config::Switch::Auto);
        let mut now = before.clone();
        now.trainer.use_amp = ocelli_config::Switch::Off;
        assert_eq!(changes(&before, &now), Changes::default());
        let found = changes(&now, &Config { trainer: before.trainer.clone(), ..now.clone() });
        assert_eq!(found.noted, ["trainer_config.use_amp was false, is \"auto\""]);
    }

    #[test]
    fn a_trained_model_stays_the_one_that_was_trained() {
        let trained = Config::default();
        let mut now = trained.clone();
        (now.data.train_split_ratio, now.trainer.seed, now.model.dropout) = (0.5, 7, 0.25);
        assert_eq!(of_the_model(&trained, &now), [""; 0]);
        (now.model.rope_theta, now.model.tie_weights) = (500.0, !trained.model.tie_weights);
        now.model.residual = ocelli_config::Residual::Published;
        let found = of_the_model(&trained, &now);
        let keys: Vec<&str> = found.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(keys, ["model_config.residual", "model_config.rope_theta", "model_config.tie_weights"]);
    }

    #[test]
    fn other_rows_are_refused_with_the_key_or_the_contents() {
        let mut before = Config::default();
        (before.data.dataset, before.data.data_path) = (Dataset::Csv, Some("a.csv".into()));
        let meta = Meta {
            config: before.to_json(),
            source_fingerprint: "1".into(),
            seed: before.trainer.seed,
            ..Meta::default()
        };
        let of = |now: &Config, data: &str| Changes::since(&meta, now, data).unwrap();
        assert_eq!(of(&before, "1"), Changes::default());
        assert_eq!(of(&before, "2").refused, ["the contents of a.csv changed"]);
        let mut now = before.clone();
        (now.data.data_path, now.data.max_pixels) = (Some("b.csv".into()), 5);
        let path = "data_config.data_path was \"a.csv\", is \"b.csv\"";
        let pixels = "data_config.max_pixels was 100000000, is 5";
        // Moved: the rows are the same.
        assert_eq!(of(&now, "1"), Changes { refused: vec![], noted: vec![path.into(), pixels.into()] });
        assert_eq!(of(&now, "2"), Changes { refused: vec![path.into()], noted: vec![pixels.into()] });
        now.trainer.seed = 5;
        assert_eq!(of(&now, "2").refused[0], "trainer_config.seed was 1337, is 5");
        let meta = Meta { config: "model_config: {n_layr: 1}".into(), ..meta.clone() };
        assert!(Changes::since(&meta, &now, "1").is_err());
    }
}
