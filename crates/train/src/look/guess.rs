//! What kind of source a path is, where no configuration says so.

use ocelli_config::Dataset;
use ocelli_data::source::pictures::Pictures;
use ocelli_data::source::{begins_as_picture, holds_parquet, holds_tar};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes by which a file is told.
const HEAD: u64 = 512;

/// Endings of what is a file, not a data set of the hub.
const FILES: [&str; 15] = [
    "csv", "tsv", "tab", "parquet", "jsonl", "json", "txt", "png", "apng", "jpg", "jpeg", "webp", "gif",
    "tar", "tgz",
];

/// A kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One that can be trained on.
    Dataset(Dataset),
    /// Pictures without captions.
    Pictures,
}

/// The kind that `source` is: by its contents, else by its name.
pub fn guess(source: &str) -> Kind {
    let path = Path::new(source);
    match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => return folder(path),
        // A pipe would block when opened.
        Ok(about) if !about.is_file() => return Kind::Pictures,
        Ok(_) => {}
        Err(_) => return absent(source),
    }
    let mut head = Vec::new();
    // Who reads the file then says why it cannot be read.
    let _ = File::open(path).and_then(|f| f.take(HEAD).read_to_end(&mut head));
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    match &*ending {
        _ if head.starts_with(b"PAR1") => Kind::Dataset(Dataset::Parquet),
        _ if begins_as_picture(&head) => Kind::Pictures,
        "tar" | "tgz" => Kind::Dataset(Dataset::WebDataset),
        "gz" if source.ends_with(".tar.gz") => Kind::Dataset(Dataset::WebDataset),
        "csv" => Kind::Dataset(Dataset::Csv),
        "tsv" | "tab" => Kind::Dataset(Dataset::Tsv),
        "parquet" => Kind::Dataset(Dataset::Parquet),
        // Whose reader says that the folder is wanted.
        "jsonl" => Kind::Dataset(Dataset::Folder),
        // Who reads pictures can say what else a file is.
        _ => Kind::Pictures,
    }
}

fn folder(path: &Path) -> Kind {
    if holds_parquet(path) {
        Kind::Dataset(Dataset::Parquet)
    } else if holds_tar(path) {
        Kind::Dataset(Dataset::WebDataset)
    } else if Pictures::are_captioned(path) {
        Kind::Dataset(Dataset::Folder)
    } else {
        Kind::Pictures
    }
}

/// A name that is no file: drawn pictures, or a data set of the hub, `owner/name`.
fn absent(source: &str) -> Kind {
    let part = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    // A hub's name may hold dots; one that ends as a table does is a file that is missing, rather.
    let ending =
        Path::new(source).extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let hub = source.split_once('/').is_some_and(|(owner, name)| {
        part(owner) && part(name) && !owner.starts_with('.') && !FILES.contains(&&*ending)
    });
    match source {
        "shapes" => Kind::Dataset(Dataset::Shapes),
        _ if hub => Kind::Dataset(Dataset::Coco),
        _ if source.ends_with(".parquet") => Kind::Dataset(Dataset::Parquet),
        _ if source.ends_with(".tar") => Kind::Dataset(Dataset::WebDataset),
        _ if source.ends_with(".tsv") => Kind::Dataset(Dataset::Tsv),
        _ => Kind::Dataset(Dataset::Csv),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_before_names() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
            guess(path.to_str().unwrap())
        };
        assert_eq!(file("a.csv", b"PAR1...."), Kind::Dataset(Dataset::Parquet));
        assert_eq!(file("b.CSV", b"image,caption\n"), Kind::Dataset(Dataset::Csv));
        assert_eq!(file("c.tsv", b""), Kind::Dataset(Dataset::Tsv));
        assert_eq!(file("e.csv", b"\x89PNG"), Kind::Pictures);
        assert_eq!(file("f.jsonl", b"{}"), Kind::Dataset(Dataset::Folder));
        assert_eq!(file("d.jpg", b"<html>"), Kind::Pictures);
        let of = |name: &str| guess(dir.path().join(name).to_str().unwrap());
        file("bare/x.png", b"");
        assert_eq!(of("bare"), Kind::Pictures);
        file("bare/x.txt", b"a dot");
        assert_eq!(of("bare"), Kind::Dataset(Dataset::Folder));
        file("shards/data/train-0.parquet", b"");
        assert_eq!(of("shards"), Kind::Dataset(Dataset::Parquet));
        file("tars/train-000.tar", b"");
        assert_eq!(of("tars"), Kind::Dataset(Dataset::WebDataset));
        assert_eq!(of("none-{000..002}.tar"), Kind::Dataset(Dataset::WebDataset));
        assert_eq!(guess("shapes"), Kind::Dataset(Dataset::Shapes));
        assert_eq!(guess("RIW/small-coco"), Kind::Dataset(Dataset::Coco));
        assert_eq!(guess("owner/na.me-1"), Kind::Dataset(Dataset::Coco));
        for file in ["pics/none.csv", "pics/none.CSV", "../none", "./na.me", "pics/none.png"] {
            assert_eq!(guess(file), Kind::Dataset(Dataset::Csv), "{file}");
        }
    }
}
