//! What the cache holds of a data set, found without a request.

use std::collections::BTreeSet;

use crate::source::SplitNames;
use crate::text::count;

use super::cache::{Cache, State};
use super::listing::{Kept, Listing, is_parquet};
use super::name::MAIN;
use super::select::{Selection, Unselectable, select, series};
use super::{CONVERTED, DataSet, Fetched, HubError, online};

/// What the cache holds.
#[derive(Debug)]
pub(super) enum Held {
    /// Every wanted file.
    Whole(Fetched),
    /// Files that may be all: another program fetched them and left no list.
    Perhaps(Fetched),
    /// A part: which files are wanting, and why.
    Part(Vec<String>),
    /// Nothing.
    Nothing,
}

impl Held {
    /// What is wanting, for a person.
    pub(super) fn missing(&self, set: &DataSet, cache: &Cache) -> String {
        const SHOWN: usize = 3;
        let (name, folder) = (format!("{} ({})", set.id, set.revision()), cache.folder());
        match self {
            Self::Part(files) => {
                let more = files.len().saturating_sub(SHOWN);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let first = files[..files.len().min(SHOWN)].join(", ");
                format!(
                    "{} of {name} in {} cannot be used: {first}{more}",
                    count(files.len(), "file"),
                    folder.display()
                )
            }
            _ => format!("{name} is not in the cache {}", folder.display()),
        }
    }
}

/// The revisions that may hold the files: what the hub made of a data set stands for its main branch alone.
pub(super) fn revisions(set: &DataSet) -> Vec<&str> {
    let revision = set.revision();
    if revision == MAIN { vec![revision, CONVERTED] } else { vec![revision] }
}

/// Looks into the cache.
///
/// # Errors
/// If the cache knows all files of the revision and nothing can be selected among them.
pub(super) fn look(cache: &Cache, set: &DataSet, splits: &SplitNames) -> Result<Held, HubError> {
    for revision in revisions(set) {
        let Some(commit) = cache.commit(revision) else { continue };
        let tree = cache.tree(&commit);
        let names: BTreeSet<String> = match &tree {
            Some(tree) => tree.files.keys().filter(|name| is_parquet(name)).cloned().collect(),
            None => cache.present(&commit),
        };
        match select(names.iter(), set.folder.as_deref(), splits) {
            Ok(selection) => return Ok(judge(cache, &commit, tree.as_ref(), selection)),
            Err(Unselectable::NoParquet) => {}
            // Without a list there may be more at the hub than here.
            Err(why) if tree.is_some() => return Err(online::unselectable(set, revision, why)),
            Err(_) => {}
        }
    }
    Ok(Held::Nothing)
}

fn judge(cache: &Cache, commit: &str, tree: Option<&Listing>, selection: Selection) -> Held {
    let kept = |name: &String| tree.and_then(|tree| tree.files.get(name)).and_then(Kept::bytes);
    let wrong = selection.names().filter_map(|name| match cache.state(commit, name, kept(name)) {
        State::Present => None,
        State::Absent => Some(format!("{name} (absent)")),
        State::Damaged(why) => Some(format!("{name} ({why})")),
    });
    let wrong: Vec<String> = wrong.collect();
    if !wrong.is_empty() {
        return Held::Part(wrong);
    }
    let names: BTreeSet<String> = selection.names().cloned().collect();
    let fetched = paths(cache, commit, selection);
    if tree.is_some() {
        return Held::Whole(fetched);
    }
    match series(&names) {
        (absent, _) if !absent.is_empty() => {
            Held::Part(absent.iter().map(|n| format!("{n} (absent)")).collect())
        }
        (_, true) => Held::Whole(fetched),
        _ => Held::Perhaps(fetched),
    }
}

/// The paths of a selection.
pub(super) fn paths(cache: &Cache, commit: &str, selection: Selection) -> Fetched {
    let paths = |names: &[String]| names.iter().map(|name| cache.path(commit, name)).collect();
    let (train, validation) = (paths(&selection.train), paths(&selection.validation));
    Fetched { commit: commit.into(), train, validation, note: selection.note, warnings: selection.warnings }
}
