//! Names of files as tables and metadata write them, made safe.

use std::path::{Path, PathBuf};

/// A name within a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// It stays in the folder.
    Inside(PathBuf),
    /// It leads out: an absolute path, or too many `..`.
    Outside(PathBuf),
}

/// A folder that names are relative to.
#[derive(Debug)]
pub(crate) struct Root {
    /// Its absolute paths: as it was given, and with links followed.
    paths: Vec<PathBuf>,
}

impl Root {
    /// Of `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let paths = [std::path::absolute(folder), folder.canonicalize()];
        Self { paths: paths.into_iter().flatten().collect() }
    }

    /// Reads a name. An absolute path is in the folder if it is below it as written, or once links are followed.
    pub(crate) fn name(&self, raw: &str) -> Name {
        let relative = name(raw);
        let Name::Outside(written) = &relative else { return relative };
        if !written.is_absolute() {
            return relative;
        }
        let below =
            |path: &Path| self.paths.iter().find_map(|root| Some(path.strip_prefix(root).ok()?.to_owned()));
        let below = below(written).or_else(|| below(&written.canonicalize().ok()?));
        match below.as_ref().and_then(|rest| rest.to_str()).map(name) {
            Some(Name::Inside(rest)) => Name::Inside(rest),
            _ => relative,
        }
    }
}

/// A name in its shortest spelling, wherever it leads.
pub(crate) fn shortest(raw: &str) -> PathBuf {
    match name(raw) {
        Name::Inside(path) | Name::Outside(path) => path,
    }
}

/// True if `text` is an address (`https://...`, `s3://...`), not the name of a file.
pub(crate) fn is_address(text: &str) -> bool {
    let scheme = text.trim_start().split_once("://").map_or("", |(scheme, _)| scheme);
    let plain = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    scheme.len() > 1 && scheme.len() < 16 && !scheme.eq_ignore_ascii_case("file") && scheme.chars().all(plain)
}

/// What to do about an address in the place of a picture, for a message.
pub(crate) fn not_fetched(address: &str) -> String {
    let shown = match address.char_indices().nth(200) {
        Some((end, _)) => &address[..end],
        None => address,
    };
    format!(
        "`{}` is an address, and addresses are not fetched: download the pictures first, and name their files",
        shown.trim()
    )
}

/// What to do about a name that leads out of `folder`, for a message.
pub(crate) fn leads_out(name: &Path, folder: &Path) -> String {
    format!(
        "`{}` leads out of {}: put the picture below that folder, or the table into a folder above both",
        name.display(),
        folder.display()
    )
}

/// Reads a name. `\` divides as `/` does: metadata made on Windows has it.
fn name(raw: &str) -> Name {
    let text = raw.trim().replace('\\', "/");
    let mut bytes = text.bytes();
    let drive = matches!((bytes.next(), bytes.next()), (Some(b'a'..=b'z' | b'A'..=b'Z'), Some(b':')));
    let outside = || Name::Outside(PathBuf::from(raw.trim()));
    if text.starts_with('/') || drive {
        return outside();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return outside(),
            ".." => {}
            part => parts.push(part),
        }
    }
    Name::Inside(parts.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_inside_are_followed() {
        for (raw, wanted) in [
            ("a.jpg", "a.jpg"),
            (" ./b//a.jpg ", "b/a.jpg"),
            ("b\\c\\a.jpg", "b/c/a.jpg"),
            ("b/../a.jpg", "a.jpg"),
            ("", ""),
        ] {
            assert_eq!(name(raw), Name::Inside(wanted.into()), "{raw:?}");
        }
        for raw in [
            "/etc/passwd",
            "../../etc/passwd",
            "a/../../b",
            "C:\\x.jpg",
            "c:/x",
            "\\\\host\\x",
            "..",
            "..\\x",
        ] {
            assert!(matches!(name(raw), Name::Outside(_)), "{raw:?}");
        }
    }

    #[test]
    fn addresses_are_no_names() {
        for text in ["https://example.com/0.jpg", " HTTP://x/y", "s3://bucket/a.png", "hf://datasets/a/b.jpg"]
        {
            assert!(is_address(text), "{text}");
        }
        for text in ["a.jpg", "c://x.jpg", "a b://x", "/a/b.jpg", "file:///a/b.jpg", "", "://"] {
            assert!(!is_address(text), "{text}");
        }
        assert!(not_fetched(&"https://\u{e9}".repeat(99)).contains("not fetched"));
    }

    #[test]
    fn absolute_names_inside_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("set");
        std::fs::create_dir_all(base.join("b")).unwrap();
        std::fs::write(base.join("b/a.jpg"), "").unwrap();
        std::fs::write(dir.path().join("c.jpg"), "").unwrap();
        let root = Root::new(&base);
        let of = |name: &str| root.name(&base.join(name).display().to_string());
        assert_eq!(of("b/a.jpg"), Name::Inside("b/a.jpg".into()));
        assert_eq!(of("none.jpg"), Name::Inside("none.jpg".into()));
        assert_eq!(of("b/../b/a.jpg"), Name::Inside("b/a.jpg".into()));
        assert_eq!(root.name("b/a.jpg"), Name::Inside("b/a.jpg".into()));
        for outside in ["../c.jpg", "b/../../c.jpg", "../set2/a.jpg", "../none/a.jpg"] {
            assert!(matches!(of(outside), Name::Outside(_)), "{outside}");
        }
        #[cfg(unix)]
        {
            let link = dir.path().join("link");
            std::os::unix::fs::symlink(&base, &link).unwrap();
            let inside = Name::Inside("b/a.jpg".into());
            assert_eq!(root.name(&link.join("b/a.jpg").display().to_string()), inside);
            assert_eq!(Root::new(&link).name(&base.join("b/a.jpg").display().to_string()), inside);
        }
    }
}
