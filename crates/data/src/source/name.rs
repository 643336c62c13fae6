//! Names of files as tables and metadata write them, made safe.

use std::path::PathBuf;

/// A name within a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// It stays in the folder.
    Inside(PathBuf),
    /// It leads out: an absolute path, or too many `..`.
    Outside(PathBuf),
}

/// Reads a name. `\` divides as `/` does: metadata made on Windows has it.
pub(crate) fn name(raw: &str) -> Name {
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
}
