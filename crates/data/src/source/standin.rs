//! Files that stand where data should be: refused by what they are, before a parser makes nonsense of them,
//! with the right `data_config.dataset` where there is one.

use std::fs::File;
use std::path::Path;

use super::encoding::Encoding;
use super::{SourceError, positioned, unmarked};
use crate::text::printable;

/// What a source wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A table of text in this encoding.
    Table(Encoding),
    /// Lines of JSON in this encoding.
    Lines(Encoding),
    /// A parquet file.
    Parquet,
    /// A tar archive.
    Tar,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Table(_) => "CSV",
            Self::Lines(_) => "lines of JSON",
            Self::Parquet => "parquet",
            Self::Tar => "a tar archive",
        }
    }
}

/// First bytes, and what they mean. None of them begins a table, lines of JSON or a parquet file.
const SIGNATURES: [(&[u8], &str); 10] = [
    (b"version https://git-lfs", "is a Git LFS pointer, not the data: run `git lfs pull`"),
    (b"PK\x03\x04", "is a zip archive or an Excel workbook: unpack it, or export it as CSV"),
    (b"\x1f\x8b", "is gzip-compressed: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is zstd-compressed: unpack it first"),
    (b"BZh", "is bzip2-compressed: unpack it first"),
    (b"\xfd7zXZ", "is xz-compressed: unpack it first"),
    (b"PARE", "is an encrypted parquet file, which is not read"),
    (b"SQLite format 3", "is an SQLite database"),
    (b"ARROW1", "is an Arrow file: save it as parquet"),
    (b"\xff\xff\xff\xff", "is an Arrow stream: save it as parquet"),
];

/// So many zeros may stand in the first bytes of a text.
const FEW_ZEROS: usize = 8;

const PICTURES: [(&[u8], &str); 4] =
    [(b"\x89PNG", "PNG"), (b"\xff\xd8\xff", "JPEG"), (b"GIF8", "GIF"), (b"RIFF", "WebP")];

/// Opens what should be a file of the wanted kind.
///
/// # Errors
/// If it cannot be opened, or cannot be what is wanted. A pipe is never opened: that would wait for its writer.
pub(crate) fn open(path: &Path, wanted: Wanted) -> Result<File, SourceError> {
    let io = |e| SourceError::io(path, e);
    let about = std::fs::metadata(path).map_err(io)?;
    if !about.is_file() && !about.is_dir() {
        return Err(SourceError::not_usable(path, "is no plain file"));
    }
    let file = File::open(path).map_err(io)?;
    refuse(path, &file, wanted)?;
    Ok(file)
}

/// Refuses a file that cannot be what is wanted.
pub(crate) fn refuse(path: &Path, file: &File, wanted: Wanted) -> Result<(), SourceError> {
    let io = |e| SourceError::io(path, e);
    let about = file.metadata().map_err(io)?;
    if about.is_dir() {
        return Err(SourceError::not_usable(path, folder(path, wanted)));
    }
    if !about.is_file() {
        return Err(SourceError::not_usable(path, "is no plain file"));
    }
    let mut head = [0; 512];
    let read = positioned::read_at(file, &mut head, 0).map_err(io)?;
    match what(&head[..read], wanted) {
        Some(found) => Err(SourceError::not_usable(path, found)),
        None => Ok(()),
    }
}

/// A folder in a file's place, with the source that reads folders like it.
fn folder(path: &Path, wanted: Wanted) -> String {
    let dataset = if holds_parquet(path) { "parquet" } else { "folder" };
    format!("is a folder: a {} file is wanted; for a folder set data_config.dataset={dataset}", wanted.name())
}

/// True if there is a parquet file in a folder or some levels below it: `data/`, `default/train/`.
pub fn holds_parquet(folder: &Path) -> bool {
    let walk = walkdir::WalkDir::new(folder).max_depth(4).into_iter().filter_map(Result::ok).take(10_000);
    walk.map(walkdir::DirEntry::into_path).any(|p| p.extension().is_some_and(|e| e == "parquet"))
}

/// True if there is a tar archive in a folder or some levels below it.
pub fn holds_tar(folder: &Path) -> bool {
    let walk = walkdir::WalkDir::new(folder).max_depth(4).into_iter().filter_map(Result::ok).take(10_000);
    walk.map(walkdir::DirEntry::into_path).any(|p| p.extension().is_some_and(|e| e == "tar"))
}

/// What a folder of Arrow files is, as `save_to_disk` of `datasets` writes them.
pub(crate) fn arrow(folder: &Path) -> Option<&'static str> {
    let names = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|e| e.file_name());
    let mut names = names.take(10_000);
    let is_arrow = names.any(|name| {
        name == "dataset_dict.json" || Path::new(&name).extension().is_some_and(|e| e == "arrow")
    });
    is_arrow.then_some(
        "holds Arrow files, which are not read (save_to_disk of `datasets` writes them): write each split as parquet \
         (load_from_disk, then to_parquet), and set data_config.dataset=parquet",
    )
}

/// What a file that should be plain text, of any contents, is instead.
pub(crate) fn stand_in(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(512)];
    let known =
        SIGNATURES.iter().find(|(start, _)| head.starts_with(start)).map(|(_, found)| (*found).into());
    let picture = PICTURES.iter().find(|(start, _)| head.starts_with(start));
    known
        .or_else(|| picture.map(|(_, kind)| format!("is a {kind} picture, not text")))
        .or_else(|| head.starts_with(b"PAR1").then(|| "is a parquet file, not text".into()))
        .or_else(|| web_page(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head), "text"))
}

/// What a web page is, where `wanted` should be.
fn web_page(head: &[u8], wanted: &str) -> Option<String> {
    let text = head.trim_ascii_start();
    let lower = text[..text.len().min(15)].to_ascii_lowercase();
    let page = [&b"<!doctype"[..], b"<html", b"<?xml"].iter().any(|start| lower.starts_with(start));
    let shown = printable(text, 60);
    page.then(|| format!("is a web page, not {wanted} (a failed download?): `{shown}`"))
}

/// True if a file that begins with `head` is one of the pictures that are read.
pub fn begins_as_picture(head: &[u8]) -> bool {
    PICTURES.iter().any(|(bytes, _)| head.starts_with(bytes))
}

fn what(head: &[u8], wanted: Wanted) -> Option<String> {
    let whole = head.len() < 512;
    let body = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = body.trim_ascii_start();
    if text.is_empty() && whole {
        return Some(match wanted {
            Wanted::Table(_) => "is empty: at least a header line and one row are wanted".into(),
            _ => format!("is empty: {} is wanted", wanted.name()),
        });
    }
    if let Some((_, found)) = SIGNATURES.iter().find(|(bytes, _)| head.starts_with(bytes)) {
        return Some((*found).into());
    }
    if let Some((_, kind)) = PICTURES.iter().find(|(bytes, _)| head.starts_with(bytes)) {
        return Some(format!(
            "is a {kind} picture, not {}: for a folder of pictures set data_config.dataset=folder",
            wanted.name()
        ));
    }
    let shown = printable(text, 60);
    if let Some(found) = web_page(text, wanted.name()) {
        return Some(found);
    }
    let json = text.starts_with(b"{") || text.starts_with(b"[");
    match wanted {
        Wanted::Parquet => (!head.starts_with(b"PAR1")).then(|| no_parquet(text, json)),
        _ if head.starts_with(b"PAR1") => {
            Some(format!("is a parquet file, not {}: set data_config.dataset=parquet", wanted.name()))
        }
        Wanted::Tar => None,
        Wanted::Table(_) if json => {
            Some(format!("is JSON, not CSV (an error answer in place of a download?): `{shown}`"))
        }
        Wanted::Table(encoding) => no_text(head, encoding),
        Wanted::Lines(encoding) => no_text(head, encoding).or_else(|| {
            let plain = encoding.inner().is_ascii_compatible();
            (plain && !json).then(|| format!("is not lines of JSON: it begins `{shown}`"))
        }),
    }
}

/// What is no parquet file, with the source that reads it.
fn no_parquet(text: &[u8], json: bool) -> String {
    let shown = printable(text, 60);
    let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
    let is_text =
        std::str::from_utf8(line).is_ok_and(|l| !l.chars().any(|c| c.is_control() && c != '\t' && c != '\r'));
    if json {
        format!("is JSON, not parquet (an error answer in place of a download?): `{shown}`")
    } else if is_text && line.contains(&b'\t') {
        format!("is a text file, not parquet: `{shown}`; for a table set data_config.dataset=tsv")
    } else if is_text && line.contains(&b',') {
        format!("is a text file, not parquet: `{shown}`; for a table set data_config.dataset=csv")
    } else {
        format!("is not parquet: it does not begin with `PAR1` but with `{shown}`")
    }
}

/// What cannot be text in the encoding.
fn no_text(head: &[u8], encoding: Encoding) -> Option<String> {
    let wide = unmarked::wide(head);
    if let Some(wide) = wide.filter(|wide| !encoding.name().eq_ignore_ascii_case(wide)) {
        let marked = encoding_rs::Encoding::for_bom(head).is_some() && wide.starts_with("utf-16");
        if marked && encoding.is_utf_16() {
            // The mark names the byte order.
            return None;
        }
        let (name, advice) = (encoding.name(), unmarked::advice(wide));
        let known = encoding == Encoding::UTF_8;
        return Some(if known {
            advice
        } else {
            format!("is not {name} (data_config.encoding): it {advice}")
        });
    }
    if head.starts_with(b"\xef\xbb\xbf") && encoding != Encoding::UTF_8 {
        let own = encoding.name();
        return Some(format!(
            "begins with the mark of UTF-8, and data_config.encoding is {own}: set it to utf-8"
        ));
    }
    // A few are damaged rows, wherever they stand.
    let zeros = head.iter().filter(|b| **b == 0).count();
    let binary = encoding.inner().is_ascii_compatible() && zeros > FEW_ZEROS;
    binary.then(|| format!("is binary, not text: {zeros} of its first {} bytes are 0", head.len()))
}

/// The source that reads a file, as an advice to set it; empty if there is none.
pub(crate) fn dataset(path: &Path, file: &File) -> String {
    let mut head = [0; 512];
    let read = positioned::read_at(file, &mut head, 0).unwrap_or(0);
    let head = &head[..read];
    let named = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    let dataset = if head.starts_with(b"PAR1") {
        "parquet"
    } else if head.get(257..262) == Some(b"ustar") {
        "webdataset"
    } else if begins_as_picture(head) {
        return "; give the folder that it lies in".into();
    } else if named("jsonl") {
        return "; give the folder that it lies in, and call it metadata.jsonl".into();
    } else if named("tsv") {
        "tsv"
    } else if named("csv") {
        "csv"
    } else {
        return String::new();
    };
    format!("; for this file set data_config.dataset={dataset}")
}
