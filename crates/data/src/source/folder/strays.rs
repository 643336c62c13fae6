//! Pictures on the wrong side: outside of the splits, and so left out; or trained on although their folder is called as
//! a split that is not.

use std::path::{Path, PathBuf};

use super::Folder;
use super::items::Item;
use super::walk::walk_but;
use crate::source::SourceError;
use crate::source::splits::{Kind, kind, known};
use crate::text::count;

/// Says how many pictures of `path` lie in none of the folders of its splits.
pub(super) fn outside(path: &Path, splits: &[String]) -> Result<Option<String>, SourceError> {
    let found = walk_but(path, splits)?;
    Ok(found.pictures.first().map(|first| {
        let pictures = count(found.pictures.len(), "picture");
        format!("left out: {pictures} outside of the splits, such as {}", path.join(first).display())
    }))
}

/// Refuses pictures to train on that lie in a folder called as another split. Metadata that name them are told of
/// only: somebody wrote them down.
pub(super) fn held_out(train: &Folder) -> Result<Option<String>, SourceError> {
    let certain = |name: &str| known(name).is_some_and(|kind| kind != Kind::Train);
    let doubtful = |name: &str| kind(name).is_some_and(|kind| kind != Kind::Train);
    let named = train.pictures.iter().any(|item| item.line.is_some());
    if let Some((pictures, folder)) = lying_in(train, &certain).filter(|_| !named) {
        let above = folder.parent().map(|above| train.base.join(above)).filter(|above| has_train(above));
        let advice = match above {
            Some(above) => {
                format!("give the folder of the splits, data_config.data_path={}", above.display())
            }
            None => format!(
                "put those to train on into a folder train beside it, or give it another name ({} is trained on as a \
                 whole)",
                train.base.display()
            ),
        };
        let found = format!(
            "{pictures} to train on in `{}`, which is called as another split: {advice}",
            folder.display()
        );
        return Err(SourceError::not_usable(&train.base, found));
    }
    Ok(lying_in(train, &doubtful).map(|(pictures, folder)| {
        format!("{pictures} in `{}` are trained on, whatever that folder's name says", folder.display())
    }))
}

/// How many pictures lie in folders of such names, and the first of these.
fn lying_in(train: &Folder, is_such: &dyn Fn(&str) -> bool) -> Option<(String, PathBuf)> {
    let folder = |item: &Item| {
        let below =
            train.under.as_ref().map_or(Ok(&*item.name), |under| item.name.strip_prefix(under)).ok()?;
        let parts: Vec<_> = below.parent()?.components().collect();
        let at = parts.iter().position(|part| is_such(&part.as_os_str().to_string_lossy()))?;
        Some(parts[..=at].iter().collect::<PathBuf>())
    };
    let inside = train.pictures.iter().filter(|item| !item.outside);
    let folders: Vec<PathBuf> = inside.filter_map(folder).collect();
    Some((count(folders.len(), "picture"), folders.first()?.clone()))
}

/// True if a folder has one called as the split to train on.
fn has_train(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|e| e.path().is_dir())
        .any(|e| known(&e.file_name().to_string_lossy()) == Some(Kind::Train))
}
