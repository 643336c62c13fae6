//! Which files make up a split: by the names of files (`train-00000-of-00005-0123abcd.parquet`) and folders
//! (`train/0000.parquet`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::source::SourceError;
use crate::source::splits::SplitNames;

/// The files of one split, in the order of their names.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) paths: Vec<PathBuf>,
    /// What a person would call it.
    pub(super) shown: PathBuf,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) train: Split,
    pub(super) validation: Option<Split>,
    pub(super) notes: Vec<String>,
}

impl Split {
    /// Files that are known to make up a split.
    pub(super) fn of(paths: Vec<PathBuf>, shown: PathBuf) -> Self {
        Self { paths, shown }
    }
}

/// The split that a file's path below its set names.
pub(crate) fn split_of(below: &str, names: &SplitNames) -> Option<String> {
    Named::of(Path::new(""), PathBuf::from(below), names).split
}

/// Finds the files of the splits asked for.
pub(super) fn find(path: &Path, names: &SplitNames) -> Result<Files, SourceError> {
    let (root, paths, whole) = list(path)?;
    if let [only] = &paths[..]
        && only == path
    {
        names.choose(path, &[])?;
        let train = Split { paths, shown: path.into() };
        return Ok(Files { train, validation: None, notes: Vec::new() });
    }
    let files: Vec<Named> = paths.into_iter().map(|path| Named::of(&root, path, names)).collect();
    let mut splits = BTreeMap::<Option<String>, Vec<&Named>>::new();
    files.iter().for_each(|file| splits.entry(file.split.clone()).or_default().push(file));
    let there: Vec<String> = splits.keys().flatten().cloned().collect();
    let chosen = names.choose(path, &there)?;
    let mut notes = Vec::from_iter(chosen.note);
    if let (Some(left), false) = (splits.get(&None), there.is_empty()) {
        let first = left[0].path.display();
        notes.push(format!("{} files belong to no split and are left out, such as {first}", left.len()));
    }
    let mut split = |name: &Option<String>| {
        let files = splits.get(name).map_or(&[][..], |files| files);
        notes.extend(check(path, files, whole)?);
        let shown = name.as_ref().map_or_else(|| path.to_path_buf(), |name| path.join(name));
        Ok(Split { paths: files.iter().map(|file| file.path.clone()).collect(), shown })
    };
    let train = split(&chosen.train)?;
    let validation = if chosen.validation.is_some() { Some(split(&chosen.validation)?) } else { None };
    Ok(Files { train, validation, notes })
}

/// The folder that names are relative to, the files in order, and whether they are all that the folder has.
fn list(path: &Path) -> Result<(PathBuf, Vec<PathBuf>, bool), SourceError> {
    let about = std::fs::metadata(path);
    let pattern = path.to_str().filter(|text| about.is_err() && text.contains(['*', '?', '[']));
    let (root, mut paths, whole) = match (pattern, about) {
        (Some(pattern), _) => {
            let wrong = |e: glob::PatternError| SourceError::not_usable(path, format!("is no pattern: {e}"));
            let paths = glob::glob(pattern).map_err(wrong)?.filter_map(Result::ok).filter(|p| p.is_file());
            let fixed = pattern.split(['*', '?', '[']).next().unwrap_or_default();
            let root = fixed.rsplit_once('/').map_or("", |(root, _)| root);
            (PathBuf::from(root), paths.collect::<Vec<_>>(), false)
        }
        (None, Err(e)) => return Err(SourceError::io(path, e)),
        (None, Ok(about)) if about.is_dir() => (path.to_path_buf(), walk(path)?, true),
        (None, Ok(_)) => return Ok((path.into(), vec![path.to_path_buf()], true)),
    };
    paths.sort();
    if paths.is_empty() {
        return Err(SourceError::not_usable(path, none(path, pattern.is_some())));
    }
    Ok((root, paths, whole))
}

/// All parquet files below a folder. Links to files are followed (a cache is made of them), to folders not.
fn walk(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let visible = |e: &DirEntry| e.depth() == 0 || !e.file_name().as_encoded_bytes().starts_with(b".");
    let mut paths = Vec::new();
    for entry in WalkDir::new(folder).follow_root_links(true).into_iter().filter_entry(visible) {
        let entry = entry.map_err(|e| {
            let place = e.path().unwrap_or(folder).to_path_buf();
            SourceError::io(&place, e.into())
        })?;
        let named = entry.path().extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"));
        if named && entry.path().is_file() {
            paths.push(entry.into_path());
        }
    }
    Ok(paths)
}

/// Why there are no files.
fn none(path: &Path, pattern: bool) -> String {
    if pattern {
        return "no file has a name like that".into();
    }
    let names = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|e| e.file_name());
    let has = |ending: &str| names.into_iter().any(|n| n.to_string_lossy().to_lowercase().ends_with(ending));
    if has("metadata.csv") || path.join("metadata.jsonl").exists() {
        "has no .parquet file, but metadata: set data_config.dataset=folder".into()
    } else {
        "has no .parquet file".into()
    }
}

/// A file with what its name says.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    split: Option<String>,
    shard: Option<Shard>,
}

/// `NAME-INDEX-of-TOTAL...`.
#[derive(Debug, PartialEq, Eq)]
struct Shard {
    name: String,
    index: usize,
    total: usize,
}

impl Named {
    fn of(root: &Path, path: PathBuf, names: &SplitNames) -> Self {
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let shard = shard(&stem);
        let below = path.strip_prefix(root).unwrap_or(&path);
        let folders = below.parent().into_iter().flat_map(Path::components).rev();
        let folders = folders.map(|c| c.as_os_str().to_string_lossy().into_owned());
        // The hub says so where it converted a part only.
        let mut whole = folders.map(|n| n.strip_prefix("partial-").map(str::to_owned).unwrap_or(n));
        let folder = whole.find(|n| names.knows(n));
        let own = shard.as_ref().map(|s| s.name.clone());
        let word = |text: &str| {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.find(|word| names.knows(word)).map(str::to_owned)
        };
        // Writers name parts of anything so.
        let nameless = |name: &String| !["part", "data", "shard", ""].contains(&name.as_str());
        let split = own.clone().filter(|n| names.knows(n)).or(folder);
        let split = split.or_else(|| word(&stem)).or_else(|| own.filter(nameless));
        Self { path, split, shard }
    }
}

fn shard(stem: &str) -> Option<Shard> {
    let parts: Vec<&str> = stem.split('-').collect();
    let of = parts.iter().rposition(|part| *part == "of").filter(|of| *of >= 1)?;
    let number = |at: usize| {
        let text = parts.get(at)?;
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
    };
    let (index, total) = (number(of - 1)?, number(of + 1)?);
    Some(Shard { name: parts[..of - 1].join("-"), index, total })
}

/// Refuses a split whose files do not make a set. `whole`: the files are all that there are, so that a missing
/// one is missing.
fn check(path: &Path, files: &[&Named], whole: bool) -> Result<Option<String>, SourceError> {
    let refuse = |found: String| Err(SourceError::not_usable(path, found));
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.path.parent()).collect();
    if let (Some(a), Some(b)) = (folders.iter().next(), folders.iter().nth(1)) {
        return refuse(format!(
            "files of one split lie in {} and in {}: give one of them as data_config.data_path",
            a.display(),
            b.display()
        ));
    }
    let shards: Vec<(&Named, &Shard)> = files.iter().filter_map(|f| Some((*f, f.shard.as_ref()?))).collect();
    let Some((first, set)) = shards.first() else { return Ok(None) };
    let same = |shard: &Shard| (&shard.name, shard.total) == (&set.name, set.total);
    if let Some((other, _)) = shards.iter().find(|(_, shard)| !same(shard)) {
        let (a, b) = (first.path.display(), other.path.display());
        return refuse(format!("{a} and {b} are parts of two sets: take one set away"));
    }
    let mut places = BTreeMap::new();
    for (file, shard) in &shards {
        if let Some(twice) = places.insert(shard.index, file.path.display()) {
            return refuse(format!("{twice} and {} are the same part", file.path.display()));
        }
    }
    let mut missing = (0..set.total).filter(|index| !places.contains_key(index));
    let Some(index) = missing.next() else { return Ok(None) };
    let found = format!(
        "{} of {} parts are missing, the first: {}-{index:05}-of-{:05}",
        1 + missing.count(),
        set.total,
        set.name,
        set.total
    );
    if whole { refuse(found) } else { Ok(Some(found)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_splits_and_parts() {
        let of = |name: &str| {
            let named = Named::of(Path::new("root"), Path::new("root").join(name), &SplitNames::default());
            (named.split.unwrap_or_default(), named.shard.map(|s| (s.index, s.total)))
        };
        for (name, split, part) in [
            ("data/train-00000-of-00005.parquet", "train", Some((0, 5))),
            ("data/validation-00004-of-00005-0a1b2c.parquet", "validation", Some((4, 5))),
            ("train/0000.parquet", "train", None),
            ("default/test/0001.parquet", "test", None),
            ("default/partial-train/0001.parquet", "train", None),
            ("train/part-00001-of-00002.parquet", "train", Some((1, 2))),
            ("part-00001-of-00002.parquet", "", Some((1, 2))),
            ("my_train_2017.parquet", "train", None),
            ("queries-0-of-1.parquet", "queries", Some((0, 1))),
            ("x.parquet", "", None),
            ("one-of-many.parquet", "", None),
            ("-of-.parquet", "", None),
        ] {
            assert_eq!(of(name), (split.into(), part), "{name}");
        }
    }
}
