//! Which snapshot a run goes on from, and whether it may.

use super::{newest_at, refused};
use crate::changes::Changes;
use crate::error::TrainError;
use crate::run_dir::{latest_run_with, snapshot_folders};
use crate::snapshot::{self, Meta, Passed, Snapshot, SnapshotError, SnapshotName};
use ocelli_config::{Config, LoadStrategy};
use std::path::{Path, PathBuf};

/// Runs that are listed in a message.
pub(super) const LISTED: usize = 12;

/// The snapshot that a run goes on from. It goes with the configuration and the data.
pub struct Origin {
    /// Its file.
    pub path: PathBuf,
    /// What it holds.
    pub snapshot: Snapshot<'static>,
    /// What changed in the configuration since, a line each.
    pub changed: Vec<String>,
    /// Newer snapshots that were refused, as warnings.
    pub refused: Vec<SnapshotError>,
    /// Newer snapshots of other settings or data.
    pub passed: Vec<Passed>,
}

/// Finds and reads the snapshot that the configuration asks for, if any. An explicit path comes first. `data` is the
/// fingerprint of the training source.
///
/// # Errors
/// If the snapshot asked for does not exist, cannot be used, or was made with other settings or data.
pub fn origin(
    c: &Config,
    name: &str,
    explicit: Option<&Path>,
    data: &str,
) -> Result<Option<Origin>, TrainError> {
    let (root, dir) = (Path::new(&c.trainer.run_dir), Path::new(&c.trainer.snapshot_dir));
    let (path, refused, passed) = match (explicit, c.trainer.snapshot_load_strategy) {
        (Some(path), _) => {
            let (path, refused) = newest_at(path)?;
            (path, refused, vec![])
        }
        (None, None) => return Ok(None),
        (None, Some(strategy)) => {
            let wanted = |name| match strategy {
                LoadStrategy::Latest => true,
                LoadStrategy::Epoch(epoch) => name == SnapshotName::end_of_epoch(epoch),
            };
            let search = latest_run_with(root, name, dir, &wanted, &|meta| judge(meta, c, data))?;
            match (search.found, strategy) {
                (Some(found), _) => (found.path, search.refused, search.passed),
                (None, LoadStrategy::Latest) if search.refused.is_empty() && search.passed.is_empty() => {
                    return Ok(None);
                }
                (None, LoadStrategy::Epoch(epoch))
                    if search.refused.is_empty() && search.passed.is_empty() =>
                {
                    return Err(no_epoch(root, name, dir, epoch)?);
                }
                (None, _) => return Err(none_fits(root, name, strategy, &search.refused, &search.passed)),
            }
        }
    };
    let snapshot = snapshot::load(&path)?;
    let found = Changes::since(&snapshot.meta, c, data)?;
    if !found.refused.is_empty() {
        return Err(super::refused(&path, unfit(&found.refused)));
    }
    Ok(Some(Origin { path, snapshot, changed: found.noted, refused, passed }))
}

/// Whether a run may go on from a snapshot; else what differs, on one line.
fn judge(meta: &Meta, c: &Config, data: &str) -> Result<(), String> {
    match Changes::since(meta, c, data) {
        Ok(found) if found.refused.is_empty() => Ok(()),
        Ok(found) => Err(found.refused.join("; ")),
        Err(e) => Err(e.to_string().replace('\n', " ")),
    }
}

fn unfit(differences: &[String]) -> String {
    format!(
        "it was made with other settings or data:\n  {}\nTo start new training from its weights, set \
         model_config.init_from to it",
        differences.join("\n  ")
    )
}

/// There are snapshots, and none will do.
fn none_fits(
    root: &Path,
    name: &str,
    strategy: LoadStrategy,
    damaged: &[SnapshotError],
    passed: &[Passed],
) -> TrainError {
    let of = match strategy {
        LoadStrategy::Latest => format!("of '{name}'"),
        LoadStrategy::Epoch(epoch) => format!("of '{name}' at the end of epoch {epoch}"),
    };
    let damaged: String = damaged.iter().map(|e| format!("\n  {e}")).collect();
    let Some(newest) = passed.first() else {
        return refused(root, format!("no snapshot {of} is whole:{damaged}"));
    };
    let which = match passed.iter().map(|p| p.count).sum() {
        1 => format!("the only snapshot {of}"),
        n => format!("the newest of {n} snapshots {of}, none of which fits"),
    };
    let why = format!(
        "this is {which}, and it was made with other settings or data:\n  {}{damaged}\nTo start anew leave \
         trainer_config.snapshot_load_strategy out; to start new training from its weights, set \
         model_config.init_from to it",
        newest.why.replace("; ", "\n  ")
    );
    refused(&newest.path, why)
}

/// There is no snapshot at the end of an epoch; what there is, newest first.
fn no_epoch(root: &Path, name: &str, dir: &Path, epoch: u64) -> Result<TrainError, TrainError> {
    let mut listed = Vec::new();
    for folder in snapshot_folders(root, name, dir)? {
        let names = snapshot::list(&folder)?;
        let newest = names.first().and_then(|(_, path)| snapshot::peek(path).ok());
        // In a folder that runs share there are others' snapshots too.
        if newest.as_ref().is_none_or(|meta| meta.config_name == name) {
            let line = format!("\n  {}: {}", folder.display(), present(&names));
            listed.push((newest.map(|meta| meta.saved_unix_ms), line));
        }
    }
    listed.sort_by(|a, b| b.cmp(a));
    let more = listed.len().saturating_sub(LISTED);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let lines: String = listed.iter().take(LISTED).map(|(_, line)| line.as_str()).collect();
    let why = match listed.len() {
        0 => format!("no run of '{name}' is there to take the snapshot of epoch {epoch} from"),
        _ => {
            let wanted = SnapshotName::end_of_epoch(epoch);
            format!(
                "no run of '{name}' has {wanted}. There is, newest first:{lines}{more}\nThe ends of epochs are saved \
                 where trainer_config.snapshot_interval is null, of data that end"
            )
        }
    };
    Ok(refused(root, why))
}

/// The ends of epochs among snapshots, newest first, or else the newest one within an epoch.
fn present(names: &[(SnapshotName, PathBuf)]) -> String {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for epoch in names.iter().rev().filter(|(n, _)| n.step.is_none()).map(|(n, _)| n.epoch) {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == epoch => *last = epoch,
            _ => spans.push((epoch, epoch)),
        }
    }
    let span = |(a, b): &(u64, u64)| if a == b { a.to_string() } else { format!("{a} to {b}") };
    match (&spans[..], names.first()) {
        ([], None) => "no snapshot".into(),
        ([], Some((newest, _))) => format!("no end of an epoch; the newest is {newest}"),
        ([(a, b)], _) if a == b => format!("epoch {a}"),
        (spans, _) => format!("epochs {}", spans.iter().map(span).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_said_in_spans() {
        let of = |names: &[SnapshotName]| {
            let mut names: Vec<_> = names.iter().map(|n| (*n, PathBuf::new())).collect();
            names.sort_by_key(|(name, _)| std::cmp::Reverse(*name));
            present(&names)
        };
        let end = SnapshotName::end_of_epoch;
        assert_eq!(of(&[]), "no snapshot");
        assert_eq!(of(&[end(3)]), "epoch 3");
        assert_eq!(of(&[end(0), end(1), SnapshotName::within_epoch(2, 9), end(4)]), "epochs 0 to 1, 4");
        let within = SnapshotName::within_epoch(0, 7);
        assert_eq!(of(&[within]), "no end of an epoch; the newest is 00_0000007_snapshot.safetensors");
    }
}
