//! Files that stand where a CSV file should be: refused by what they are, before a parser makes nonsense of
//! them.

use std::fs::File;
use std::path::Path;

use crate::source::{SourceError, positioned};

/// First bytes, and what they mean.
const SIGNATURES: [(&[u8], &str); 9] = [
    (b"version https://git-lfs", "is a Git LFS pointer, not the data: run `git lfs pull`"),
    (b"\xff\xfe", "is UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16: save it as UTF-8"),
    (b"PK\x03\x04", "is a zip archive or an Excel workbook: unpack it, or export it as CSV"),
    (b"\x1f\x8b", "is gzip-compressed: unpack it first"),
    (b"PAR1", "is a parquet file, not CSV"),
    (b"SQLite format 3", "is an SQLite database, not CSV"),
    (b"\x89PNG", "is a PNG picture, not CSV"),
    (b"\xff\xd8\xff", "is a JPEG picture, not CSV"),
];

/// Refuses a file that cannot be CSV.
pub(super) fn refuse_standins(path: &Path, file: &File) -> Result<(), SourceError> {
    let io = |e| SourceError::io(path, e);
    let about = file.metadata().map_err(io)?;
    if about.is_dir() {
        return Err(SourceError::not_usable(path, "is a folder: a CSV file is wanted"));
    }
    let mut head = [0; 512];
    let read = positioned::read_at(file, &mut head, 0).map_err(io)?;
    let head = &head[..read];
    match what(head) {
        Some(found) => Err(SourceError::not_usable(path, found)),
        None => Ok(()),
    }
}

fn what(head: &[u8]) -> Option<String> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if text.is_empty() && head.len() < 512 {
        return Some("is empty: at least a header line and one row are wanted".into());
    }
    if let Some((_, found)) = SIGNATURES.iter().find(|(bytes, _)| head.starts_with(bytes)) {
        return Some((*found).into());
    }
    let lower = text[..text.len().min(15)].to_ascii_lowercase();
    if lower.starts_with(b"<!doctype") || lower.starts_with(b"<html") || lower.starts_with(b"<?xml") {
        let shown = text[..text.len().min(60)].escape_ascii();
        return Some(format!("is a web page, not CSV (a failed download?): `{shown}`"));
    }
    head.contains(&0).then(|| "is binary, not CSV: there is a byte 0 near its start".into())
}
