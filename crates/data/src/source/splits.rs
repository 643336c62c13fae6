//! Named splits of a source: which is trained on, which validates.

use std::path::Path;

use super::SourceError;

/// Names that are taken for those of splits, wherever they stand.
const KNOWN: [&str; 9] =
    ["train", "training", "validation", "valid", "val", "dev", "test", "testing", "eval"];
/// Splits that validate if nobody says which, the first that is there. `test` is not among them: figures on it
/// should steer no choice.
const VALIDATION: [&str; 4] = ["validation", "val", "valid", "dev"];

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitNames {
    /// Trained on (`data_config.train_split`).
    pub train: String,
    /// Validates (`data_config.val_split`); `None`: the usual names.
    pub validation: Option<String>,
}

impl Default for SplitNames {
    fn default() -> Self {
        Self { train: "train".into(), validation: None }
    }
}

/// What was chosen among the names that are there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// `None`: there are no names, all of the source is trained on.
    pub(crate) train: Option<String>,
    pub(crate) validation: Option<String>,
    pub(crate) note: Option<String>,
}

impl SplitNames {
    /// True if `name` is the name of a split.
    pub(crate) fn knows(&self, name: &str) -> bool {
        KNOWN.contains(&name) || self.train == name || self.validation.as_deref() == Some(name)
    }

    /// Chooses among the splits that `path` has.
    pub(crate) fn choose(&self, path: &Path, there: &[String]) -> Result<Chosen, SourceError> {
        let has = |name: &str| there.iter().any(|n| n == name);
        let missing = |key: &str, name: &str| {
            let found = match there {
                [] => format!("has no named splits, and {key} is {name}: leave it as it was"),
                _ => format!("has no split `{name}` ({key}): there are {}", list(there)),
            };
            SourceError::not_usable(path, found)
        };
        if let Some(name) = self.validation.as_deref().filter(|name| !has(name)) {
            return Err(missing("data_config.val_split", name));
        }
        if there.is_empty() && self.train == Self::default().train {
            return Ok(Chosen::default());
        }
        if !has(&self.train) {
            return Err(missing("data_config.train_split", &self.train));
        }
        let usual =
            || VALIDATION.into_iter().filter(|n| *n != self.train).find(|n| has(n)).map(str::to_owned);
        let validation = self.validation.clone().or_else(usual);
        let note = Some(match &validation {
            Some(name) => {
                format!("splits: `{}` to train on, `{name}` to validate on, of {}", self.train, list(there))
            }
            None => format!(
                "splits: `{}` to train on, of {}; part of it validates (data_config.val_split names another split)",
                self.train,
                list(there)
            ),
        });
        Ok(Chosen { train: Some(self.train.clone()), validation, note })
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(there: &[&str], train: &str, validation: Option<&str>) -> Result<(String, String), String> {
        let names = SplitNames { train: train.into(), validation: validation.map(str::to_owned) };
        let there: Vec<String> = there.iter().map(|n| (*n).into()).collect();
        let chosen = names.choose(Path::new("x"), &there).map_err(|e| e.to_string())?;
        Ok((chosen.train.unwrap_or_default(), chosen.validation.unwrap_or_default()))
    }

    #[test]
    fn usual_names_are_found_and_test_is_left_alone() {
        let of = |there: &[&str]| chosen(there, "train", None).unwrap();
        assert_eq!(of(&["dev", "train", "val"]), ("train".into(), "val".into()));
        assert_eq!(of(&["test", "train"]), ("train".into(), String::new()));
        assert_eq!(of(&[]), Default::default());
        assert_eq!(chosen(&["test", "train"], "train", Some("test")).unwrap().1, "test");
        assert_eq!(chosen(&["a", "val"], "val", None).unwrap(), ("val".into(), String::new()));
        for (there, train, validation) in [
            (&["test"][..], "train", None),
            (&["train"], "train", Some("val")),
            (&[], "a", None),
            (&[], "train", Some("b")),
        ] {
            let text = chosen(there, train, validation).unwrap_err();
            assert!(text.contains("data_config."), "{text}");
        }
    }
}
