//! From the hub into the cache: the list of files, then each file that is wanting.

use crate::source::SplitNames;
use crate::text::count;

use super::cache::{Cache, State};
use super::client::Client;
use super::download::{self, Wanted};
use super::listing::{Listing, is_parquet};
use super::remote::{complete, list};
use super::select::{Selection, Unselectable, select};
use super::text::size;
use super::{CONVERTED, DataSet, Fetched, HubError, Missing, Told, address, free_bytes, held};

/// Fetches what is wanting.
pub(super) fn fetch(
    client: &Client<'_>,
    cache: &Cache,
    set: &DataSet,
    splits: &SplitNames,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Fetched, HubError> {
    let (mut listing, revision, selection) = find(client, cache, set, splits)?;
    for name in selection.names() {
        complete(client, set, &mut listing, name)?;
    }
    cache.remember(revision, &listing)?;
    let wanted = wanting(client, cache, set, &listing, &selection, tell);
    announce(client, cache, set, &listing.commit, &wanted, tell)?;
    for file in &wanted {
        download::fetch(client, cache, file, tell)?;
        cache.link(&listing.commit, &file.name, &file.content)?;
    }
    Ok(held::paths(cache, &listing.commit, selection))
}

/// The first revision that holds parquet files.
fn find<'a>(
    client: &Client<'_>,
    cache: &Cache,
    set: &'a DataSet,
    splits: &SplitNames,
) -> Result<(Listing, &'a str, Selection), HubError> {
    let revisions = held::revisions(set);
    for (i, revision) in revisions.iter().enumerate() {
        let listing = match list(client, set, revision) {
            // Not every data set is converted.
            Err(HubError::NotFound { missing: Missing::Revision | Missing::Something, .. }) if i > 0 => break,
            other => other?,
        };
        let parquet = listing.files.keys().filter(|name| is_parquet(name));
        match select(parquet, set.folder.as_deref(), splits) {
            Ok(selection) => return Ok((listing, revision, selection)),
            // Remembered, so that the next run goes on to the next revision without asking.
            Err(Unselectable::NoParquet) => cache.remember(revision, &listing)?,
            Err(why) => return Err(unselectable(set, revision, why)),
        }
    }
    Err(unselectable(set, set.revision(), Unselectable::NoParquet))
}

/// Why the files of a revision cannot be used.
pub(super) fn unselectable(set: &DataSet, revision: &str, why: Unselectable) -> HubError {
    const SHOWN: usize = 8;
    let short = |names: &[String]| {
        let more = if names.len() > SHOWN { ", ..." } else { "" };
        format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
    };
    let found = match why {
        Unselectable::NoParquet => {
            let under = set.folder.as_ref().map_or(String::new(), |folder| format!(" under {folder}"));
            let converted = if revision == super::name::MAIN {
                format!(", and the hub made none of it (its branch {CONVERTED})")
            } else {
                String::new()
            };
            format!(
                "it holds no parquet file{under}{converted}. Fetch it by other means and use another data_config.dataset"
            )
        }
        Unselectable::Several(sets) => format!(
            "it holds several sets of files, in {}: choose one with data_config.data_path={}/{}",
            short(&sets),
            set.id,
            sets.first().map_or("FOLDER", |set| set)
        ),
        Unselectable::Splits(why) => why,
    };
    HubError::Content { data_set: format!("{} ({revision})", set.id), found }
}

/// The files that are not there, or cannot be right. Content that is there under another revision is only linked.
fn wanting(
    client: &Client<'_>,
    cache: &Cache,
    set: &DataSet,
    listing: &Listing,
    selection: &Selection,
    tell: &mut dyn FnMut(Told<'_>),
) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for name in selection.names() {
        let Some((file, size, content)) =
            listing.files.get(name).and_then(|file| Some((file, file.bytes()?, file.content()?)))
        else {
            continue;
        };
        match cache.state(&listing.commit, name, Some(size)) {
            State::Present => continue,
            State::Absent => {}
            State::Damaged(why) => {
                tell(Told::Warning(&format!("{name} is damaged in the cache ({why}): it is fetched again")));
            }
        }
        wanted.push(Wanted {
            name: name.clone(),
            url: address::file(&client.settings.endpoint, &set.id, &listing.commit, name),
            content: content.into(),
            size,
            checksum: file.checksum(),
        });
    }
    wanted
}

/// Says how much will be fetched where to, if there is room for it.
fn announce(
    client: &Client<'_>,
    cache: &Cache,
    set: &DataSet,
    commit: &str,
    wanted: &[Wanted],
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<(), HubError> {
    let left = |file: &Wanted| match cache.has_blob(&file.content, file.size) {
        Ok(true) => Ok(0),
        Ok(false) => Ok(file.size - download::left_over(cache, &file.content).min(file.size)),
        Err(error) => Err(error),
    };
    let needed = wanted.iter().map(left).sum::<Result<u64, HubError>>()?;
    let folder = cache.folder();
    if let Some(free) = free_bytes(&folder).filter(|free| *free < needed) {
        return Err(HubError::NoSpace { folder, needed, free: Some(free) });
    }
    if needed == 0 {
        return Ok(());
    }
    tell(Told::Note(&format!(
        "hub: fetching {} at {commit:.8} from {}: {}, {}, into {}",
        set.id,
        client.settings.endpoint,
        count(wanted.len(), "file"),
        size(needed),
        folder.display()
    )));
    Ok(())
}
