//! Which files a revision of a data set has, as the hub says it and as the cache keeps it.
//!
//! Invariant: what becomes part of a path in the cache (commit, name of a parquet file, name of its content) was
//! checked to be a plain name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Checksum;
use super::name::unsafe_path;

/// The hub cuts longer lists short.
const LONGEST: usize = 50_000;

/// The files of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    /// The commit, hexadecimal.
    pub(super) commit: String,
    /// All files; the parquet files among them have safe names.
    pub(super) files: BTreeMap<String, Kept>,
}

/// One file as the cache keeps it, in `trees/<commit>.json`. The same format as the hub's Python client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(default)]
    pub(super) size: Option<u64>,
    #[serde(default)]
    pub(super) blob_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    xet_hash: Option<String>,
}

impl Kept {
    /// From a server that tells of single files only.
    pub(super) fn of_headers(size: u64, content: String) -> Self {
        Self { size: Some(size), blob_id: Some(content), ..Self::default() }
    }

    /// The name of the content in the cache's `blobs`.
    pub(super) fn content(&self) -> Option<&str> {
        self.lfs_sha256.as_deref().or(self.blob_id.as_deref())
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.lfs_size.or(self.size)
    }

    /// What the content must hash to, where its name says so.
    pub(super) fn checksum(&self) -> Option<Checksum> {
        Checksum::named(self.content()?)
    }
}

#[derive(Deserialize)]
struct Info {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
    size: u64,
}

#[derive(Serialize, Deserialize)]
struct Tree {
    format_version: u32,
    files: BTreeMap<String, Kept>,
}

/// True for the files that hold data.
pub(super) fn is_parquet(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(stem, ending)| !stem.is_empty() && ending.eq_ignore_ascii_case("parquet"))
}

/// True for a name that can stand alone as a file's name.
pub(super) fn is_plain(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=128).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.')
}

/// True for a whole commit.
pub(super) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Listing {
    /// From the hub's answer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of_answer(json: Value) -> Result<Self, String> {
        let info: Info =
            serde_json::from_value(json).map_err(|e| format!("not the hub's list of files: {e}"))?;
        if info.siblings.len() >= LONGEST {
            return Err(format!(
                "{} files, more than the hub lists: fetch them by other means and set data_config.data_path to their \
                 folder",
                info.siblings.len()
            ));
        }
        let kept = |s: Sibling| {
            let (lfs_sha256, lfs_size) = s.lfs.map(|lfs| (lfs.sha256, lfs.size)).unzip();
            (s.rfilename, Kept { size: s.size, blob_id: s.blob_id, lfs_sha256, lfs_size, xet_hash: None })
        };
        Self { commit: info.sha, files: info.siblings.into_iter().map(kept).collect() }.checked()
    }

    /// From a file of the cache; `None` if it is of another kind.
    pub(super) fn of_tree(commit: &str, text: &str) -> Option<Self> {
        let tree: Tree = serde_json::from_str(text).ok().filter(|tree: &Tree| tree.format_version == 1)?;
        Self { commit: commit.into(), files: tree.files }.checked().ok()
    }

    /// For the cache; `None` where something is unknown, for others would take it for the whole.
    pub(super) fn to_tree(&self) -> Option<String> {
        let whole = self.files.values().all(|file| file.size.is_some() && file.blob_id.is_some());
        let tree = Tree { format_version: 1, files: self.files.clone() };
        whole.then(|| serde_json::to_string_pretty(&tree).ok()).flatten()
    }

    fn checked(self) -> Result<Self, String> {
        if !is_commit(&self.commit) {
            return Err(format!("'{}' is no commit", super::text::harmless(&self.commit)));
        }
        for (name, file) in self.files.iter().filter(|(name, _)| is_parquet(name)) {
            if let Some(why) = unsafe_path(name) {
                return Err(format!("the file '{}' {why}; it is refused", super::text::harmless(name)));
            }
            if let Some(content) = file.content().filter(|content| !is_plain(content)) {
                let content = super::text::harmless(content);
                return Err(format!("the content of {name} is called '{content}', which is refused"));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COMMIT: &str = "0123456789012345678901234567890123456789";

    fn answer(siblings: Value) -> Result<Listing, String> {
        Listing::of_answer(json!({ "sha": COMMIT, "siblings": siblings, "private": false }))
    }

    #[test]
    fn a_listing_survives_the_cache() {
        let listing = answer(json!([
            { "rfilename": "README.md", "size": 3, "blobId": "ab12" },
            { "rfilename": "data/train.parquet", "size": 9, "blobId": "cd", "lfs": { "sha256": "ef", "size": 9, "pointerSize": 1 } },
        ]))
        .unwrap();
        let file = &listing.files["data/train.parquet"];
        assert_eq!((file.content(), file.bytes()), (Some("ef"), Some(9)));
        let tree = listing.to_tree().unwrap();
        assert_eq!(Listing::of_tree(COMMIT, &tree).unwrap(), listing);
        assert_eq!(Listing::of_tree(COMMIT, &tree.replace("1", "2")), None);
    }

    #[test]
    fn a_server_without_sizes_leaves_no_tree() {
        assert_eq!(answer(json!([{ "rfilename": "a.parquet" }])).unwrap().to_tree(), None);
    }

    #[test]
    fn names_that_lead_out_of_the_cache_are_refused() {
        for name in [
            "../a.parquet",
            "/a.parquet",
            "a/../../b.parquet",
            "a//b.parquet",
            "a\\b.parquet",
            "a\nb.parquet",
        ] {
            let error = answer(json!([{ "rfilename": name }])).unwrap_err();
            assert!(error.contains("refused") || error.contains("path"), "{name}: {error}");
        }
        for content in ["../x", "", ".x", "a/b"] {
            let error = answer(json!([{ "rfilename": "a.parquet", "blobId": content }])).unwrap_err();
            assert!(error.contains("refused"), "{content}: {error}");
        }
        for commit in ["main", "../../x", ""] {
            assert!(Listing::of_answer(json!({ "sha": commit })).unwrap_err().contains("no commit"));
        }
        assert!(Listing::of_answer(json!([1])).is_err());
    }

    proptest::proptest! {
        /// Whatever a server lists: refused, or every parquet file's paths stay in the cache.
        #[test]
        fn no_name_leads_out(name in "[./\\\\a~\u{0}:]{0,12}", content in "[./\\\\a0]{0,6}") {
            let name = format!("{name}.parquet");
            let Ok(listing) = answer(json!([{ "rfilename": name, "size": 1, "blobId": content }])) else { return Ok(()) };
            for (name, file) in listing.files.iter().filter(|(name, _)| is_parquet(name)) {
                let paths = [std::path::Path::new(name), std::path::Path::new(file.content().unwrap())];
                for path in paths {
                    let plain = |c| matches!(c, std::path::Component::Normal(_));
                    proptest::prop_assert!(path.components().all(plain) && path.components().count() > 0, "{path:?}");
                }
            }
        }
    }
}
