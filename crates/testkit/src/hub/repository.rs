//! A data set as the hub serves it: the list of files, and each file by name.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{Asked, Reply};

/// The commit of every stand-in.
pub const COMMIT: &str = "5e1f0c0ffee5e1f0c0ffee5e1f0c0ffee5e1f0c0";

/// A data set of one revision.
#[derive(Clone, Debug)]
pub struct Repository {
    /// `owner/name`.
    pub id: String,
    /// The branch that it is served under.
    pub branch: String,
    /// Content by name. All of it is of the kind for large files, with a sha256.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Where files are redirected to, as the hub does for large ones; the path there is `/NAME`.
    pub elsewhere: Option<String>,
    /// The token without which nothing is served.
    pub token: Option<String>,
    /// The list tells sizes and checksums; else only the headers of each file do.
    pub sizes: bool,
}

impl Repository {
    /// An empty data set on its main branch.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            branch: "main".into(),
            files: BTreeMap::new(),
            elsewhere: None,
            token: None,
            sizes: true,
        }
    }

    /// With a file.
    pub fn with(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name.into(), content.into());
        self
    }

    /// Answers as the hub does.
    pub fn answer(&self, asked: &Asked) -> Reply {
        let path = asked.path.split('?').next().unwrap_or_default();
        let branch = self.branch.replace('/', "%2F");
        let list = [&branch, COMMIT].map(|revision| format!("/api/datasets/{}/revision/{revision}", self.id));
        let file = format!("/datasets/{}/resolve/{COMMIT}/", self.id);
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        if bearer.is_some() && asked.header("authorization") != bearer.as_deref() {
            return refuse(401, "GatedRepo", "Access to this dataset is restricted");
        }
        if list.iter().any(|list| list == path) {
            return Reply::new(200, self.list().to_string()).with("Content-Type", "application/json");
        }
        if path.starts_with(&format!("/api/datasets/{}/revision/", self.id)) {
            return refuse(404, "RevisionNotFound", "Invalid rev id");
        }
        match path.strip_prefix(&file).and_then(|name| Some((name, self.files.get(name)?))) {
            Some((name, content)) => self.file(asked, name, content),
            None => refuse(404, "RepoNotFound", "Repository not found"),
        }
    }

    /// Answers as the hub's store of large files does.
    pub fn answer_elsewhere(&self, asked: &Asked) -> Reply {
        match self.files.get(asked.path.trim_start_matches('/')) {
            Some(content) => Reply::content(asked, content),
            None => Reply::new(404, ""),
        }
    }

    fn file(&self, asked: &Asked, name: &str, content: &[u8]) -> Reply {
        let reply = match &self.elsewhere {
            Some(address) => Reply::redirect(&format!("{address}/{name}")),
            None => Reply::content(asked, content),
        };
        reply
            .with("X-Repo-Commit", COMMIT)
            .with("X-Linked-Size", &content.len().to_string())
            .with("X-Linked-Etag", &format!("\"{}\"", sha256(content)))
    }

    fn list(&self) -> Value {
        let file = |(name, content): (&String, &Vec<u8>)| match self.sizes {
            false => json!({ "rfilename": name }),
            true => json!({
                "rfilename": name,
                "size": content.len(),
                "blobId": "0".repeat(40),
                "lfs": { "sha256": sha256(content), "size": content.len(), "pointerSize": 130 },
            }),
        };
        let siblings: Vec<Value> = self.files.iter().map(file).collect();
        json!({ "id": self.id, "sha": COMMIT, "private": false, "siblings": siblings })
    }
}

fn refuse(status: u16, code: &str, message: &str) -> Reply {
    Reply::new(status, "").with("X-Error-Code", code).with("X-Error-Message", message)
}

/// Hexadecimal.
fn sha256(content: &[u8]) -> String {
    digest(&SHA256, content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
