//! Which of a data set's parquet files are wanted: one set of them, its training and validation splits.
//!
//! Split names are found as the hub's `datasets` library finds them: in a folder's name, or in a file's name between
//! anything but letters. Files without one are training data; other splits (test) are left alone.

use std::collections::{BTreeMap, BTreeSet};

/// The splits that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Split {
    Train,
    Validation,
    /// One that training leaves alone.
    Other,
}

/// The wanted files, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) train: Vec<String>,
    pub(super) validation: Vec<String>,
}

impl Selection {
    /// All of them.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.train.iter().chain(&self.validation)
    }
}

/// Why nothing can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unselectable {
    /// There is no parquet file (under the wanted folder).
    NoParquet,
    /// There are several sets, in these folders.
    Several(Vec<String>),
    /// There are other splits alone.
    NoTraining(Vec<String>),
}

/// Selects among the `names` of parquet files. `folder`: only those under it; `.`: only those in the top folder.
pub(super) fn select<'a>(
    names: impl Iterator<Item = &'a String>,
    folder: Option<&str>,
) -> Result<Selection, Unselectable> {
    let inside = |name: &&String| match folder {
        None => true,
        Some(".") => set_of(name).is_empty(),
        Some(folder) => name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
    };
    let mut sets = BTreeMap::<&str, Vec<&String>>::new();
    for name in names.filter(inside) {
        sets.entry(set_of(name)).or_default().push(name);
    }
    let files = match (sets.len(), sets.get("default")) {
        (0, _) => return Err(Unselectable::NoParquet),
        (1, _) => sets.into_values().next().unwrap_or_default(),
        (_, Some(files)) => files.clone(),
        _ => return Err(Unselectable::Several(sets.into_keys().map(shown).collect())),
    };
    let mut selection = Selection::default();
    let mut others = Vec::new();
    for name in files {
        match split_of(name) {
            Some(Split::Train) | None => selection.train.push(name.clone()),
            Some(Split::Validation) => selection.validation.push(name.clone()),
            Some(Split::Other) => others.push(name.clone()),
        }
    }
    if selection.train.is_empty() {
        return Err(Unselectable::NoTraining(selection.validation.into_iter().chain(others).collect()));
    }
    Ok(selection)
}

fn shown(set: &str) -> String {
    if set.is_empty() { ".".into() } else { set.into() }
}

/// The folder of the set that a file belongs to: its own, or the one above if its own is a split.
fn set_of(name: &str) -> &str {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (above, last) = folder.rsplit_once('/').unwrap_or(("", folder));
    if word_split(last).is_some() { above } else { folder }
}

/// The split that a file's path names. The innermost folder that names one counts before the file.
pub(super) fn split_of(name: &str) -> Option<Split> {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    folder.rsplit('/').find_map(word_split).or_else(|| {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        stem.split(|c: char| !c.is_ascii_alphabetic()).find_map(keyword)
    })
}

/// The split of a folder's whole name. The hub calls it `partial-train` where it converted a part only.
fn word_split(folder: &str) -> Option<Split> {
    keyword(folder.strip_prefix("partial-").unwrap_or(folder))
}

fn keyword(word: &str) -> Option<Split> {
    match word.to_ascii_lowercase().as_str() {
        "train" | "training" => Some(Split::Train),
        "validation" | "valid" | "val" | "dev" => Some(Split::Validation),
        "test" | "testing" | "eval" | "evaluation" => Some(Split::Other),
        _ => None,
    }
}

/// Files that are absent although others of their series (`-00001-of-00005`) are present, and whether every file is
/// of such a series: then nothing else can be absent.
pub(super) fn series(names: &BTreeSet<String>) -> (Vec<String>, bool) {
    let mut present = BTreeMap::<(&str, &str), BTreeSet<u32>>::new();
    for (start, number, count) in names.iter().filter_map(|name| numbered(name)) {
        present.entry((start, count)).or_default().insert(number);
    }
    let all = names.iter().all(|name| numbered(name).is_some());
    let gaps = present.iter().flat_map(|((start, count), numbers)| {
        let (total, width) = (count.parse::<u32>().unwrap_or(0), count.len());
        let absent = (0..total).filter(|k| !numbers.contains(k));
        absent.map(move |k| format!("{start}-{k:0width$}-of-{count}"))
    });
    (gaps.collect(), all)
}

/// `data/train`, 1, `00005`. What stands behind may differ from file to file.
fn numbered(name: &str) -> Option<(&str, u32, &str)> {
    let (left, right) = name.split_once("-of-")?;
    let (start, number) = left.rsplit_once('-')?;
    let count = &right[..right.bytes().take_while(u8::is_ascii_digit).count()];
    // Larger counts are no series but names that look like one.
    let total: u32 = count.parse().ok().filter(|total| *total <= 100_000)?;
    number.parse().ok().filter(|number| *number < total).map(|number| (start, number, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(names: &[&str], folder: Option<&str>) -> Result<(Vec<String>, Vec<String>), Unselectable> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        select(names.iter(), folder).map(|s| (s.train, s.validation))
    }

    #[test]
    fn splits_are_found_in_names() {
        let cases = [
            ("data/train-00000-of-00002.parquet", Some(Split::Train)),
            ("data/validation-00000-of-00001-abc.parquet", Some(Split::Validation)),
            ("default/train/0000.parquet", Some(Split::Train)),
            ("default/partial-validation/0000.parquet", Some(Split::Validation)),
            ("coco_val2017.parquet", Some(Split::Validation)),
            ("test/x-train.parquet", Some(Split::Other)),
            ("strain.parquet", None),
            ("data/0000.parquet", None),
        ];
        for (name, split) in cases {
            assert_eq!(split_of(name), split, "{name}");
        }
    }

    #[test]
    fn one_set_is_taken_and_several_are_named() {
        let data = ["data/test-0.parquet", "data/train-0.parquet", "data/val-0.parquet"];
        let expected = (vec!["data/train-0.parquet".to_string()], vec!["data/val-0.parquet".to_string()]);
        assert_eq!(pick(&data, None).unwrap(), expected);
        let two = ["a/train/0.parquet", "b/train/0.parquet", "b/test/0.parquet"];
        assert_eq!(pick(&two, None), Err(Unselectable::Several(vec!["a".into(), "b".into()])));
        assert_eq!(pick(&two, Some("b")).unwrap().0, ["b/train/0.parquet"]);
        let named = ["default/train/0.parquet", "other/train/0.parquet"];
        assert_eq!(pick(&named, None).unwrap().0, ["default/train/0.parquet"]);
        assert_eq!(pick(&["0.parquet", "x/0.parquet"], Some(".")).unwrap().0, ["0.parquet"]);
        assert_eq!(pick(&["bb/0.parquet"], Some("b")), Err(Unselectable::NoParquet));
        assert_eq!(pick(&["test.parquet"], None), Err(Unselectable::NoTraining(vec!["test.parquet".into()])));
    }

    #[test]
    fn gaps_in_a_series_are_seen() {
        let of = |names: &[&str]| series(&names.iter().map(|n| n.to_string()).collect());
        let (absent, all) = of(&["d/train-00000-of-00003.parquet", "d/train-00002-of-00003.parquet"]);
        assert_eq!((absent, all), (vec!["d/train-00001-of-00003".to_string()], true));
        assert_eq!(of(&["train.parquet"]), (vec![], false));
        assert_eq!(
            of(&["train-00000-of-00002-0a.parquet", "train-00001-of-00002-9f.parquet"]),
            (vec![], true)
        );
    }
}
