//! Named splits of a source: which is trained on, which validates.
//!
//! Invariant: two names are never one split. A name with more in it than that of a split (`train_small`) stands for
//! the split only if no other does.

use std::path::Path;

use super::SourceError;

/// What a split is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Train,
    Validation,
    Test,
}

/// Words that name splits.
const WORDS: [(&str, Kind); 9] = [
    ("train", Kind::Train),
    ("training", Kind::Train),
    ("validation", Kind::Validation),
    ("val", Kind::Validation),
    ("valid", Kind::Validation),
    ("dev", Kind::Validation),
    ("test", Kind::Test),
    ("testing", Kind::Test),
    ("eval", Kind::Test),
];
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

/// What the word is for that a name is; behind it a number may stand (`train2017`).
pub(crate) fn known(name: &str) -> Option<Kind> {
    let word = name.to_ascii_lowercase();
    let word = word.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
}

/// What the words in a name are for; nothing if they are for several things.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let mut kinds = name.split(|c: char| !c.is_ascii_alphabetic()).filter_map(known);
    let first = kinds.next()?;
    kinds.all(|other| other == first).then_some(first)
}

impl SplitNames {
    /// True if `name` was asked for.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        let asked = [Some(&self.train), self.validation.as_ref()];
        asked.into_iter().flatten().any(|asked| asked.eq_ignore_ascii_case(name))
    }

    /// True if `name` is the name of a split.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.asks_for(name) || known(name).is_some()
    }

    /// Chooses among the splits that `path` has.
    pub(crate) fn choose(&self, path: &Path, there: &[String]) -> Result<Chosen, SourceError> {
        let missing = |key: &str, name: &str| {
            let found = match there {
                [] => format!("has no named splits, and {key} is {name}: leave it as it was"),
                _ => format!(
                    "has no split `{name}` ({key}): there are {}. Set {key} to one of them",
                    list(there)
                ),
            };
            SourceError::not_usable(path, found)
        };
        let asked = self
            .validation
            .as_deref()
            .map(|name| called(there, name).ok_or_else(|| missing("data_config.val_split", name)));
        let asked = asked.transpose()?;
        if there.is_empty() && self.is_usual() {
            return Ok(Chosen::default());
        }
        let train = called(there, &self.train).or_else(|| {
            let alone = self.is_usual().then(|| candidates(there, Kind::Train)).filter(|c| c.len() == 1);
            alone.map(|c| c[0].clone())
        });
        let train = train.ok_or_else(|| missing("data_config.train_split", &self.train))?;
        let mut others = candidates(there, Kind::Validation);
        others.retain(|name| *name != train);
        let usual = || VALIDATION.iter().filter_map(|name| called(there, name)).find(|name| *name != train);
        let validation =
            asked.or_else(usual).or_else(|| others.first().filter(|_| others.len() == 1).cloned());
        let doubt = if others.len() > 1 { format!(", such as {}", list(&others)) } else { String::new() };
        let there = list(there);
        let note = Some(match &validation {
            Some(name) => format!("splits: `{train}` to train on, `{name}` to validate on, of {there}"),
            None => format!(
                "splits: `{train}` to train on, of {there}; part of it validates (data_config.val_split names another \
                 split{doubt})"
            ),
        });
        Ok(Chosen { train: Some(train), validation, note })
    }

    /// True if nobody said what to train on.
    pub(crate) fn is_usual(&self) -> bool {
        self.train == Self::default().train
    }
}

/// The split that is called so, in this case or another.
fn called(there: &[String], name: &str) -> Option<String> {
    let alike: Vec<&String> = there.iter().filter(|n| n.eq_ignore_ascii_case(name)).collect();
    match &alike[..] {
        [one] => Some((*one).clone()),
        _ => alike.into_iter().find(|n| *n == name).cloned(),
    }
}

fn candidates(there: &[String], wanted: Kind) -> Vec<String> {
    there.iter().filter(|name| kind(name) == Some(wanted)).cloned().collect()
}

fn list(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(there: &[&str], train: &str, validation: Option<&str>) -> Result<Chosen, String> {
        let names = SplitNames { train: train.into(), validation: validation.map(str::to_owned) };
        let there: Vec<String> = there.iter().map(|n| (*n).into()).collect();
        names.choose(Path::new("x"), &there).map_err(|e| e.to_string())
    }

    fn chosen(there: &[&str], train: &str, validation: Option<&str>) -> Result<(String, String), String> {
        let chosen = note(there, train, validation)?;
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
        assert_eq!(of(&["Train", "VAL"]), ("Train".into(), "VAL".into()));
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

    #[test]
    fn a_longer_name_stands_for_a_split_only_alone() {
        let of = |there: &[&str]| chosen(there, "train", None).unwrap();
        assert_eq!(
            of(&["train", "train_small", "validation_seen"]),
            ("train".into(), "validation_seen".into())
        );
        assert_eq!(of(&["my_train", "my_val", "my_test"]), ("my_train".into(), "my_val".into()));
        let doubtful = note(&["train", "validation_seen", "validation_unseen"], "train", None).unwrap();
        assert_eq!(doubtful.validation, None);
        let text = doubtful.note.unwrap();
        assert!(
            text.contains("val_split names another split, such as `validation_seen`, `validation_un"),
            "{text}"
        );
        let text = chosen(&["train_a", "train_b"], "train", None).unwrap_err();
        assert!(text.contains("`train_a`, `train_b`. Set data_config.train_split to one of them"), "{text}");
        assert_eq!(chosen(&["train_a", "train_b"], "train_b", None).unwrap().0, "train_b");
        assert!(chosen(&["train_a"], "train_b", None).is_err());
        assert!(chosen(&["train_val"], "train", None).is_err(), "it holds both");
        assert_eq!(
            ["train2017", "TEST", "trainer", "-"].map(known),
            [Some(Kind::Train), Some(Kind::Test), None, None]
        );
    }
}
