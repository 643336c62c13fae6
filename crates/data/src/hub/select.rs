//! Which of a data set's parquet files are wanted: the rules for folders of this machine
//! ([`select`](crate::source::parquet::select)), under the wanted folder.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::SplitNames;
use crate::source::parquet::select as rules;
pub(super) use crate::source::parquet::select::Unselectable;

/// The wanted files, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) train: Vec<String>,
    pub(super) validation: Vec<String>,
    /// Which splits were taken.
    pub(super) note: Option<String>,
    /// What was left out.
    pub(super) warnings: Vec<String>,
}

impl Selection {
    /// All of them.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.train.iter().chain(&self.validation)
    }
}

/// Selects among the `names` of parquet files. `folder`: only those under it; `.`: only those in the top folder.
pub(super) fn select<'a>(
    names: impl Iterator<Item = &'a String>,
    folder: Option<&str>,
    splits: &SplitNames,
) -> Result<Selection, Unselectable> {
    let below = |name: &'a String| match folder {
        None => Some(name.as_str()),
        Some(".") => Some(name.as_str()).filter(|name| rules::folder_of(name, splits).is_empty()),
        Some(folder) => name.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
    };
    let (names, below): (Vec<&String>, Vec<String>) =
        names.filter_map(|name| Some((name, below(name)?.to_owned()))).unzip();
    let found = rules::select(&below, splits).map_err(|why| match (why, folder) {
        (Unselectable::Several(inner), Some(folder)) => {
            Unselectable::Several(inner.iter().map(|name| format!("{folder}/{name}")).collect())
        }
        (why, _) => why,
    })?;
    let named = |files: Vec<usize>| files.into_iter().map(|i| names[i].clone()).collect();
    let (train, validation) = (named(found.train), named(found.validation.unwrap_or_default()));
    Ok(Selection { train, validation, note: found.note, warnings: found.warnings })
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
        select(names.iter(), folder, &SplitNames::default()).map(|s| (s.train, s.validation))
    }

    #[test]
    fn one_set_is_taken_and_several_are_named() {
        let data = ["data/test-0-of-1.parquet", "data/train-0-of-1.parquet", "data/val-0-of-1.parquet"];
        let expected =
            (vec!["data/train-0-of-1.parquet".to_string()], vec!["data/val-0-of-1.parquet".to_string()]);
        assert_eq!(pick(&data, None).unwrap(), expected);
        let two = ["a/train/0.parquet", "b/train/0.parquet", "b/test/0.parquet"];
        assert_eq!(pick(&two, None), Err(Unselectable::Several(vec!["a".into(), "b".into()])));
        assert_eq!(pick(&two, Some("b")).unwrap().0, ["b/train/0.parquet"]);
        let named = ["default/train/0.parquet", "other/train/0.parquet"];
        assert_eq!(pick(&named, None).unwrap().0, ["default/train/0.parquet"]);
        assert_eq!(pick(&["0.parquet", "x/0.parquet"], Some(".")).unwrap().0, ["0.parquet"]);
        assert_eq!(pick(&["bb/0.parquet"], Some("b")), Err(Unselectable::NoParquet));
        let partial = ["default/partial-train/0.parquet", "default/partial-validation/0.parquet"];
        assert_eq!(pick(&partial, None).unwrap().1, ["default/partial-validation/0.parquet"]);
    }

    #[test]
    fn splits_are_those_asked_for() {
        let names = ["test.parquet", "train.parquet", "other-0-of-1.parquet"].map(str::to_string);
        let of = |train: &str, validation: Option<&str>| {
            let splits = SplitNames { train: train.into(), validation: validation.map(str::to_string) };
            select(names.iter(), None, &splits).map(|s| (s.train, s.validation))
        };
        let files = |name: &str| vec![name.to_string()];
        assert_eq!(of("train", Some("test")).unwrap(), (files("train.parquet"), files("test.parquet")));
        assert_eq!(of("other", None).unwrap(), (files("other-0-of-1.parquet"), vec![]));
        let Err(Unselectable::Splits(why)) = of("training", None) else { panic!("there is none") };
        assert!(why.contains("`test`") && why.contains("data_config.train_split"), "{why}");
        assert_eq!(pick(&["0.parquet", "1.parquet"], None).unwrap().0, ["0.parquet", "1.parquet"]);
    }

    #[test]
    fn a_folder_of_a_data_set_is_read_as_one_on_this_machine() {
        let names = ["set/val/0.parquet", "set/train_small-0-of-1.parquet", "set/train-0-of-1.parquet"];
        assert_eq!(pick(&names, Some("set")).unwrap().0, ["set/train-0-of-1.parquet"]);
        assert_eq!(pick(&names, Some("set/val")).unwrap().0, ["set/val/0.parquet"]);
        let deep = ["x/a/0.parquet", "x/b/0.parquet"];
        assert_eq!(pick(&deep, Some("x")), Err(Unselectable::Several(vec!["x/a".into(), "x/b".into()])));
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
