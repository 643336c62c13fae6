//! Which of many parquet files are wanted, by their names alone: one set of files, and of it the splits to train and
//! to validate on. Folders of this machine and data sets of the hub are read by the same rules.
//!
//! A split is what stands before `-NNNNN-of-NNNNN`; else a folder that is called as a split; else what stands before
//! a number in a file's name that has the word for a split in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::SourceError;
use crate::source::splits::{SplitNames, kind};
use crate::text::count;

/// The set that is taken if there are several, as the hub's own libraries do.
const DEFAULT: &str = "default";
/// A shorter part of a name is no hash.
const HASH: usize = 6;

/// The wanted files, as places in the list of names.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) train: Vec<usize>,
    pub(crate) validation: Option<Vec<usize>>,
    /// The names of the splits; `None`: there are none.
    pub(crate) called: (Option<String>, Option<String>),
    /// Which splits were taken.
    pub(crate) note: Option<String>,
    /// What was left out.
    pub(crate) warnings: Vec<String>,
}

/// Why nothing can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unselectable {
    /// There is no parquet file (under the wanted folder).
    NoParquet,
    /// There are several sets, in these folders.
    Several(Vec<String>),
    /// It has other splits, or a split's files are not of one set; for a person.
    Splits(String),
}

/// Selects among the `names` of files, which are divided by `/`.
pub(crate) fn select(names: &[String], splits: &SplitNames) -> Result<Selection, Unselectable> {
    let all: Vec<Named<'_>> = names.iter().map(|name| Named::of(name, splits)).collect();
    let mut sets = BTreeMap::<&str, Vec<usize>>::new();
    for (i, named) in all.iter().enumerate() {
        sets.entry(&named.set).or_default().push(i);
    }
    let files = match (sets.len(), sets.get(DEFAULT)) {
        (0, _) => return Err(Unselectable::NoParquet),
        (1, _) => sets.values().next().cloned().unwrap_or_default(),
        (_, Some(files)) => files.clone(),
        _ => {
            let folders: BTreeSet<&str> = all.iter().map(|named| named.folder).collect();
            let shown = |folder: &str| if folder.is_empty() { ".".into() } else { folder.into() };
            return Err(Unselectable::Several(folders.into_iter().map(shown).collect()));
        }
    };
    let mut selection = Selection::default();
    let others: Vec<usize> = (0..all.len()).filter(|i| !files.contains(i)).collect();
    selection.leave_out(names, &others, &format!("in other folders than {DEFAULT}"));
    let mut by_split = BTreeMap::<Option<&str>, Vec<usize>>::new();
    for i in files {
        by_split.entry(all[i].split.as_deref()).or_default().push(i);
    }
    let there: Vec<String> = by_split.keys().flatten().map(|name| (*name).to_owned()).collect();
    let chosen = splits.choose(Path::new(""), &there).map_err(|error| match error {
        SourceError::NotUsable { found, .. } => Unselectable::Splits(found),
        other => Unselectable::Splits(other.to_string()),
    })?;
    let take = |name: &Option<String>| {
        let files = by_split.get(&name.as_deref()).cloned().unwrap_or_default();
        one_set(names, &all, &files).map(|()| files).map_err(Unselectable::Splits)
    };
    selection.train = take(&chosen.train)?;
    selection.validation = if chosen.validation.is_some() { Some(take(&chosen.validation)?) } else { None };
    // Where no name says a split, the files of none are what is trained on.
    if let (Some(left), true) = (by_split.get(&None), chosen.train.is_some()) {
        selection.leave_out(names, left, "in no split");
    }
    selection.called = (chosen.train, chosen.validation);
    selection.note = chosen.note;
    Ok(selection)
}

/// The folder by which a person would choose the set of a file; empty: the top one.
pub(crate) fn folder_of<'a>(name: &'a str, splits: &SplitNames) -> &'a str {
    Named::of(name, splits).folder
}

impl Selection {
    fn leave_out(&mut self, names: &[String], files: &[usize], which: &str) {
        if let Some(&first) = files.first() {
            let ending = names[first].rsplit_once('.').map_or("", |(_, ending)| ending);
            let files = count(files.len(), format!("{ending} file").trim_start());
            self.warnings.push(format!("left out: {files} {which}, such as {}", names[first]));
        }
    }
}

/// What a file's name says.
#[derive(Debug)]
struct Named<'a> {
    /// Its set: its folders but for the one that is called as its split.
    set: String,
    /// The folder by which a person would choose the set.
    folder: &'a str,
    split: Option<String>,
    part: Part,
}

/// What part of a split a file is.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Its name does not say.
    Some,
    /// All of it: it is called as the split is.
    Whole,
    /// One of several, by a number in its name.
    Numbered,
    /// `NAME-INDEX-of-TOTAL...`.
    Shard { name: String, index: usize, total: usize },
}

impl<'a> Named<'a> {
    fn of(path: &'a str, names: &SplitNames) -> Self {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let folders: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
        // The hub says so where it converted a part only.
        let called = |at: usize| folders[at].strip_prefix("partial-").unwrap_or(folders[at]);
        let nearest =
            |is_split: &dyn Fn(&str) -> bool| (0..folders.len()).rev().find(|at| is_split(called(*at)));
        let shard = shard(stem);
        let own = shard.as_ref().map(|(name, ..)| name.as_str());
        let base = if shard.is_some() { stem } else { trimmed(stem, names) };
        let has_word = |name: &str| names.asks_for(name) || kind(name).is_some();
        let named =
            |name: &str| name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| names.asks_for(word));
        // Writers name parts of anything so.
        let nameless = |name: &&str| !["part", "data", "shard", ""].contains(name);
        let mut at = None;
        let split = own.filter(|name| has_word(name)).map(str::to_owned);
        let mut in_folder = |found: Option<usize>| {
            at = found;
            found.map(|at| called(at).to_owned())
        };
        let split = split.or_else(|| in_folder(nearest(&|name| names.knows(name))));
        let split = split.or_else(|| {
            (own.is_none() && (has_word(base) || named(base) || mixed(base))).then(|| base.to_owned())
        });
        let split = split.or_else(|| in_folder(nearest(&has_word)));
        let split = split.or_else(|| own.filter(nameless).map(str::to_owned));
        let part = match shard {
            Some((name, index, total)) => Part::Shard { name, index, total },
            None if split.is_none() || at.is_some() => Part::Some,
            None if base != stem => Part::Numbered,
            None => Part::Whole,
        };
        let above = |at: usize| folder.rsplit_once('/').filter(|_| at + 1 == folders.len());
        let shown =
            at.filter(|at| at + 1 == folders.len()).map(|at| above(at).map_or("", |(above, _)| above));
        let set: Vec<&str> =
            folders.iter().enumerate().filter(|(i, _)| Some(*i) != at).map(|(_, name)| *name).collect();
        Self { set: set.join("/"), folder: shown.unwrap_or(folder), split, part }
    }
}

/// True if a name has the words for several splits in it.
fn mixed(name: &str) -> bool {
    kind(name).is_none() && name.split(|c: char| !c.is_ascii_alphabetic()).any(|word| kind(word).is_some())
}

/// A name without the numbers and hashes at its end: `train` of `train-0001-0a1b2c`, `train_2017`, `train2017`.
fn trimmed<'a>(stem: &'a str, names: &SplitNames) -> &'a str {
    let mut rest = stem;
    while !names.asks_for(rest) {
        let start = rest.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
        let last = rest.get(start..).unwrap_or_default();
        let numbers = last.bytes().filter(u8::is_ascii_digit).count();
        let hash = last.len() >= HASH && last.bytes().all(|b| b.is_ascii_hexdigit());
        let above =
            rest.get(..start).unwrap_or_default().trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if numbers == 0 || above.is_empty() && numbers == last.len() {
            break;
        } else if numbers == last.len() || hash && !above.is_empty() {
            rest = above;
        } else {
            let letters = rest.trim_end_matches(|c: char| c.is_ascii_digit());
            return if kind(&letters[start.min(letters.len())..]).is_some() { letters } else { rest };
        }
    }
    rest
}

fn shard(stem: &str) -> Option<(String, usize, usize)> {
    let parts: Vec<&str> = stem.split('-').collect();
    let of = parts.iter().rposition(|part| *part == "of").filter(|of| *of >= 1)?;
    let number = |at: usize| {
        let text = parts.get(at)?;
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
    };
    let (index, total) = (number(of - 1)?, number(of + 1)?);
    Some((parts[..of - 1].join("-"), index, total))
}

/// Refuses the files of a split that do not make one set; the error says why.
fn one_set(names: &[String], all: &[Named<'_>], files: &[usize]) -> Result<(), String> {
    let mut places = BTreeMap::new();
    let Some(&first) = files.first() else { return Ok(()) };
    for &file in files {
        let (a, b) = (&names[first], &names[file]);
        match (&all[first].part, &all[file].part) {
            (Part::Shard { name, total, .. }, Part::Shard { name: other, index, total: more }) => {
                if (name, total) != (other, more) {
                    return Err(format!("{a} and {b} are parts of two sets: take one set away"));
                }
                if let Some(twice) = places.insert(index, b) {
                    return Err(format!("{twice} and {b} are the same part"));
                }
            }
            // A split of this name and its parts: the same rows twice?
            (one, other) if std::mem::discriminant(one) != std::mem::discriminant(other) => {
                return Err(format!(
                    "{a} and {b} are of one split, in parts and not in parts: take one set away"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Which parts of a split, whose files make one set, are not there; for a person.
pub(crate) fn missing(names: &[String], files: &[usize]) -> Option<String> {
    let shards: Vec<_> = files
        .iter()
        .filter_map(|&file| {
            let file = names[file].rsplit_once('/').map_or(&*names[file], |(_, file)| file);
            shard(file.rsplit_once('.').map_or(file, |(stem, _)| stem))
        })
        .collect();
    let (name, _, total) = shards.first()?;
    let places: BTreeSet<usize> = shards.iter().map(|(_, index, _)| *index).collect();
    let mut missing = (0..*total).filter(|index| !places.contains(index));
    let first = missing.next()?;
    let n = 1 + missing.count();
    Some(format!("{n} of {total} parts are missing, the first: {name}-{first:05}-of-{total:05}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_tell_splits_and_parts() {
        let usual = SplitNames::default();
        for (name, split, set) in [
            ("data/train-00000-of-00005.parquet", "train", "data"),
            ("data/train_small-00000-of-00005.parquet", "train_small", "data"),
            ("data/validation-00004-of-00005-0a1b2c.parquet", "validation", "data"),
            ("train/0000.parquet", "train", ""),
            ("Train2017/0000.parquet", "Train2017", ""),
            ("train_small/0000.parquet", "train_small", ""),
            ("train/en/0000.parquet", "train", "en"),
            ("default/test/0001.parquet", "test", "default"),
            ("default/partial-train/0001.parquet", "train", "default"),
            ("train/part-00001-of-00002.parquet", "train", ""),
            ("part-00001-of-00002.parquet", "", ""),
            ("my_train_2017.parquet", "my_train", ""),
            ("train2017.parquet", "train", ""),
            ("train-0001-0a1b2c3d.parquet", "train", ""),
            ("train_v2.parquet", "train_v2", ""),
            ("train_val.parquet", "train_val", ""),
            ("queries-0-of-1.parquet", "queries", ""),
            ("x.parquet", "", ""),
            ("0000.parquet", "", ""),
            ("one-of-many.parquet", "", ""),
            ("-of-.parquet", "", ""),
            ("caf\u{e9}1.parquet", "", ""),
        ] {
            let named = Named::of(name, &usual);
            assert_eq!((named.split.as_deref().unwrap_or_default(), &*named.set), (split, set), "{name}");
        }
        let asked = SplitNames { train: "train2017".into(), validation: Some("en_2".into()) };
        let of = |name| Named::of(name, &asked).split.unwrap_or_default();
        assert_eq!(["train2017_0.parquet", "en_2.parquet"].map(of), ["train2017", "en_2"]);
    }

    #[test]
    fn files_that_are_two_sets_are_refused() {
        let refused = |files: &[&str], part: &str| match select(&names(files), &SplitNames::default()) {
            Err(Unselectable::Splits(why)) => assert!(why.contains(part), "{why}"),
            other => panic!("{files:?}: {other:?}"),
        };
        refused(&["train-0-of-2.parquet", "train-0-of-3.parquet"], "parts of two sets");
        refused(&["train-0-of-1-a.parquet", "train-0-of-1-b.parquet"], "the same part");
        refused(&["train-0-of-1.parquet", "train.parquet"], "in parts and not in parts");
        refused(&["train.parquet", "train_2017.parquet"], "in parts and not in parts");
        refused(&["train_a.parquet", "train_b.parquet"], "`train_a`, `train_b`");
        let files = names(&["train_0.parquet", "train_1.parquet", "train_small.parquet", "x.parquet"]);
        let taken = select(&files, &SplitNames::default()).unwrap();
        assert_eq!((taken.train, taken.validation), (vec![0, 1], None));
        assert_eq!(taken.warnings, ["left out: 1 parquet file in no split, such as x.parquet"]);
        let taken = select(&names(&["x.parquet", "y.parquet"]), &SplitNames::default()).unwrap();
        assert!(taken.train == [0, 1] && taken.warnings.is_empty(), "{taken:?}");
        let files = names(&["default/train/0.parquet", "other/train/0.parquet"]);
        let taken = select(&files, &SplitNames::default()).unwrap();
        assert!(
            taken.train == [0] && taken.warnings[0].contains("in other folders than default"),
            "{taken:?}"
        );
    }

    proptest::proptest! {
        /// Whatever files are called: no panic, and no file is in two splits or twice in one.
        #[test]
        fn any_names(files in proptest::collection::btree_set("[a-c\u{e9}/_.0-2-]{0,6}(train|val|-0-of-2|2017|_small|)[_0-1]{0,2}", 0..6)) {
            let files: Vec<String> = files.into_iter().collect();
            if let Ok(taken) = select(&files, &SplitNames::default()) {
                let all: Vec<usize> = taken.train.iter().chain(taken.validation.iter().flatten()).copied().collect();
                proptest::prop_assert!(all.iter().collect::<BTreeSet<_>>().len() == all.len() && !taken.train.is_empty());
                missing(&files, &taken.train);
            }
        }
    }
}
