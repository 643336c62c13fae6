//! What changed in the configuration since a snapshot was made: some changes would make it another model or other
//! data, and are refused; others are allowed and said.

use ocelli_config::Config;
use serde_json::Value;

/// Keys of the model that may change: they shape no weight and no meaning of one.
const FREE_MODEL: &[&str] =
    &["init_from", "dropout", "emb_dropout", "blk_dropout", "block_size", "head_size"];
/// Keys of the data that decide what a position in the stream or a target means.
const FIXED_DATA: &[&str] = &["dataset", "loss", "train_split_ratio", "endless", "train_samples", "alpha"];
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
    "train_batch_size",
    "max_iters",
    "epochs",
];

/// Changes since a snapshot, each as `group.key was A, is B`.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// The snapshot cannot go on with these.
    pub refused: Vec<String>,
    /// These are worth a line.
    pub noted: Vec<String>,
}

/// Compares two configurations.
pub fn changes(before: &Config, now: &Config) -> Changes {
    let (before, now) = (json(before), json(now));
    let mut out = Changes::default();
    for (group, keys) in now.as_object().into_iter().flatten() {
        for (key, value) in keys.as_object().into_iter().flatten() {
            let old = &before[group][key];
            if old == value {
                continue;
            }
            let line = format!("{group}.{key} was {old}, is {value}");
            match group.as_str() {
                "model_config" if !FREE_MODEL.contains(&key.as_str()) => out.refused.push(line),
                "data_config" if FIXED_DATA.contains(&key.as_str()) => out.refused.push(line),
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
}
