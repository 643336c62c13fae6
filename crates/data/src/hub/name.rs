//! What `data_config.data_path` names: something on this machine, or a data set of the hub.
//!
//! Invariant: what lies on this machine, or is written as a path, never becomes a request.

use std::path::{Path, PathBuf};

use super::HubError;

/// The branch that a data set is read from if none is named.
pub(super) const MAIN: &str = "main";

/// Where the data lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file or folder of this machine.
    Local(PathBuf),
    /// A data set of the hub.
    Hub(DataSet),
}

/// A data set of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// `owner/name`.
    pub(super) id: String,
    /// Only the files under this folder; `.` is the top folder alone.
    pub(super) folder: Option<String>,
    /// Branch, tag or commit; `None`: [`MAIN`], or what the hub made of it.
    pub(super) revision: Option<String>,
}

impl DataSet {
    /// A branch, tag or commit of a data set `owner/name` or `owner/name/folder`.
    ///
    /// # Errors
    /// If either is not of the form that the hub uses.
    pub fn new(given: &str, revision: Option<&str>) -> Result<Self, HubError> {
        let wrong = |why: String| HubError::Name { given: given.into(), why };
        let path = strip_address(given);
        let mut parts = path.trim_end_matches('/').splitn(3, '/');
        let (Some(owner), Some(name)) = (parts.next(), parts.next()) else {
            return Err(wrong(
                "no such file or folder, and no data set of the hub, which is owner/name".into(),
            ));
        };
        for part in [owner, name] {
            if let Some(why) = bad_part(part) {
                let remedy = "a data set of the hub is owner/name, a revision is data_config.revision";
                return Err(wrong(format!("no such file or folder, and '{part}' {why}: {remedy}")));
            }
        }
        let folder = parts.next().map(str::to_string);
        if let Some(folder) = folder.as_deref().filter(|f| *f != ".") {
            let page =
                ["tree", "blob", "resolve", "viewer"].contains(&folder.split('/').next().unwrap_or(""));
            let why = if page { Some("is part of an address".to_string()) } else { unsafe_path(folder) };
            if let Some(why) = why {
                let remedy = "give owner/name or owner/name/folder, and a revision as data_config.revision";
                return Err(wrong(format!("'{folder}' {why}: {remedy}")));
            }
        }
        if let Some(revision) = revision {
            // It becomes part of a path in the cache.
            if let Some(why) =
                unsafe_path(revision).or_else(|| revision.contains("..").then(|| "holds ..".into()))
            {
                let why = format!("'{revision}' {why}; it is a branch, a tag or a commit, such as {MAIN}");
                return Err(HubError::Setting { what: "data_config.revision".into(), why });
            }
        }
        let id = format!("{owner}/{name}");
        Ok(Self { id, folder, revision: revision.map(str::to_string) })
    }

    /// `owner/name`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The revision to ask for.
    pub(super) fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }
}

/// Where `given` lies: what exists on this machine comes first.
///
/// # Errors
/// If it does not exist here and cannot be a data set of the hub.
pub fn place(given: &str, revision: Option<&str>) -> Result<Place, HubError> {
    let path = Path::new(given);
    if path.exists() {
        return match revision {
            None => Ok(Place::Local(path.to_path_buf())),
            Some(_) => Err(HubError::Setting {
                what: "data_config.revision".into(),
                why: format!(
                    "data_config.data_path={given} is on this machine and has no revisions: set it to null"
                ),
            }),
        };
    }
    if looks_like_a_path(given) {
        return Err(HubError::Name { given: given.into(), why: "no such file or folder".into() });
    }
    DataSet::new(given, revision).map(Place::Hub)
}

fn looks_like_a_path(given: &str) -> bool {
    const ENDINGS: [&str; 8] = ["parquet", "csv", "tsv", "json", "jsonl", "arrow", "zip", "tar"];
    let ending = given.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["/", "./", "../", "~"].iter().any(|start| given.starts_with(start))
        || given.contains('\\')
        || ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

/// Without the part of an address that people copy along.
fn strip_address(given: &str) -> &str {
    let starts =
        ["https://huggingface.co/datasets/", "https://hf.co/datasets/", "hf://datasets/", "datasets/"];
    starts.iter().find_map(|start| given.strip_prefix(start)).unwrap_or(given)
}

/// The hub's rules for owners and names.
fn bad_part(part: &str) -> Option<&'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if part.is_empty() || part.len() > 96 {
        Some("has no fitting length")
    } else if !part.chars().all(allowed) {
        Some("holds more than letters, digits, '-', '_' and '.'")
    } else if part.contains("--") || part.contains("..") {
        Some("holds -- or ..")
    } else if part.starts_with(['-', '.']) || part.ends_with(['-', '.']) {
        Some("starts or ends with - or .")
    } else {
        None
    }
}

/// Why `path`, of the hub's making or the user's, must not be joined to a folder; `None` if it stays under it.
pub(super) fn unsafe_path(path: &str) -> Option<String> {
    let forbidden = |c: char| c.is_control() || c == '\\' || (cfg!(windows) && ":*?\"<>|".contains(c));
    if path.len() > 1024 {
        return Some("is too long".into());
    }
    if path.contains(forbidden) {
        return Some("holds characters that no path of the hub has".into());
    }
    let wrong = path.split('/').find(|part| ["", ".", ".."].contains(part));
    wrong.map(|part| format!("has a part '{part}', which would lead out of its folder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(given: &str) -> (String, Option<String>) {
        let set = DataSet::new(given, None).unwrap();
        (set.id, set.folder)
    }

    #[test]
    fn names_as_people_write_them() {
        let plain = ("RIW/small-coco".to_string(), None);
        for given in [
            "RIW/small-coco",
            "RIW/small-coco/",
            "datasets/RIW/small-coco",
            "hf://datasets/RIW/small-coco",
            "https://huggingface.co/datasets/RIW/small-coco",
        ] {
            assert_eq!(id(given), plain, "{given}");
        }
        assert_eq!(id("a/b/c/d"), ("a/b".to_string(), Some("c/d".to_string())));
        assert_eq!(id("a/b/."), ("a/b".to_string(), Some(".".to_string())));
    }

    #[test]
    fn other_names_are_refused() {
        for given in
            ["mnist", "", "a/", "a/b c", "a/b@main", "a/--b", "a/..", "a/b/../c", "a/b/tree/main", "ä/b"]
        {
            let error = DataSet::new(given, None).unwrap_err().to_string();
            assert!(error.contains("owner/name"), "{given}: {error}");
        }
        for revision in ["../x", "/x", "a//b", "a\u{1b}b", "a..b", ""] {
            let error = DataSet::new("a/b", Some(revision)).unwrap_err().to_string();
            assert!(error.contains("data_config.revision"), "{revision:?}: {error}");
        }
        DataSet::new("a/b", Some("refs/pr/1")).unwrap();
    }

    #[test]
    fn what_is_here_or_looks_like_a_path_is_no_data_set() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().to_str().unwrap();
        assert_eq!(place(here, None).unwrap(), Place::Local(dir.path().to_path_buf()));
        assert!(place(here, Some("main")).unwrap_err().to_string().contains("set it to null"));
        for given in ["./a/b", "/no/such", "~/a", "a/b.parquet", "a\\b"] {
            let found = place(given, None);
            let missing =
                matches!(&found, Err(HubError::Name { why, .. }) if why == "no such file or folder");
            assert!(missing, "{given}: {found:?}");
        }
        assert!(matches!(place("RIW/small-coco", None).unwrap(), Place::Hub(_)));
    }
}
