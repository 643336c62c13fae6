//! Where the pictures of all samples lie, and their captions: a few dozen bytes a sample beside the captions, so that
//! twenty gigabytes of archives take some tens of megabytes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::members::{self, Member};
use super::text::{self, Found, MAX_BYTES};
use crate::source::fingerprint::Fingerprint;
use crate::source::groups::Captions;
use crate::source::parquet::blocks::Blocks as Open;
use crate::source::{Blocks, SourceError};
use crate::text::count;

const PICTURES: [&str; 5] = ["jpg", "jpeg", "png", "webp", "gif"];
/// Of several captions' files of a sample the first of these is taken.
const CAPTIONS: [&str; 3] = ["txt", "caption", "json"];

/// Where a picture lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lies {
    Nowhere,
    /// In this archive; a length that does not fit is the largest that does.
    At {
        archive: u32,
        offset: u64,
        len: u32,
    },
}

/// All samples of a split.
#[derive(Debug, Default)]
pub(super) struct Index {
    archives: Vec<(PathBuf, Open)>,
    /// First sample of each archive.
    firsts: Vec<usize>,
    pictures: Vec<Lies>,
    /// Keys of all samples, and where each ends.
    keys: String,
    ends: Vec<usize>,
    pub(super) captions: Captions,
    pub(super) warnings: Vec<String>,
}

/// A sample whose files are being read.
#[derive(Default)]
struct Sample {
    key: String,
    /// What came after the key's dot.
    endings: Vec<String>,
    picture: Option<Lies>,
    /// With its place among the kinds of captions.
    caption: Option<(usize, Found)>,
    twice: Option<String>,
}

impl Index {
    /// Reads the headers and captions of archives; `given` is the caption's field in a `.json`.
    pub(super) fn read(paths: &[PathBuf], given: Option<&str>) -> Result<Self, SourceError> {
        let mut index = Self::default();
        for path in paths {
            let io = |e| SourceError::io(path, e);
            // A pipe would block when opened.
            if !std::fs::metadata(path).map_err(io)?.is_file() {
                return Err(SourceError::not_usable(path, "is no plain file"));
            }
            let file = File::open(path).map_err(io)?;
            index.firsts.push(index.pictures.len());
            index.archive(path, &file, given)?;
            index.archives.push((path.clone(), Open::new(path, file, paths.len()).map_err(io)?));
        }
        Ok(index)
    }

    fn archive(&mut self, path: &Path, file: &File, given: Option<&str>) -> Result<(), SourceError> {
        let archive = u32::try_from(self.archives.len()).unwrap_or(u32::MAX);
        let (mut sample, mut keys) = (Sample::default(), HashSet::new());
        let warning = members::read(path, file, &mut |member| {
            let Some((key, ending)) = parts(&member.name) else { return };
            if key != sample.key {
                self.push(std::mem::take(&mut sample), &mut keys);
                sample.key = key.to_owned();
            }
            sample.take(&ending.to_lowercase(), archive, given, member);
        })?;
        self.push(sample, &mut keys);
        self.warnings.extend(warning);
        Ok(())
    }

    /// Adds a sample, if it is one.
    fn push(&mut self, sample: Sample, keys: &mut HashSet<String>) {
        let Sample { key, picture, caption, mut twice, .. } = sample;
        if picture.is_none() && caption.is_none() {
            return;
        }
        if !keys.insert(key.clone()) {
            twice = Some(
                "its key stands in the archive before: the files of a sample must follow each other (`tar \
                          --sort=name`)"
                    .into(),
            );
        }
        match (twice, caption) {
            (Some(found), _) => self.captions.push_bad("duplicate_key", found),
            (None, Some((_, Ok(texts)))) => self.captions.push(texts),
            (None, Some((_, Err((reason, found))))) => self.captions.push_bad(reason, found),
            (None, None) => {
                let found = "there is no .txt, .caption or .json beside the picture".into();
                self.captions.push_bad("empty_caption", found);
            }
        }
        self.pictures.push(picture.unwrap_or(Lies::Nowhere));
        self.keys.push_str(&key);
        self.ends.push(self.keys.len());
    }

    pub(super) fn samples(&self) -> usize {
        self.pictures.len()
    }

    /// Where the picture of a row lies; nothing if there is no such row.
    pub(super) fn picture(&self, row: usize) -> Option<Lies> {
        (row < self.captions.rows()).then(|| self.pictures.get(self.captions.picture_of(row)).copied())?
    }

    pub(super) fn bytes(&self, archive: u32, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let (_, open) = self.archives.get(archive as usize).ok_or(io::ErrorKind::NotFound)?;
        open.read(offset, len)
    }

    pub(super) fn archive_bytes(&self) -> u64 {
        self.archives.iter().map(|(_, open)| open.len()).sum()
    }

    /// The archive and the key of a row.
    pub(super) fn place(&self, row: usize) -> (Option<&PathBuf>, &str) {
        let sample = self.captions.picture_of(row);
        let archive = self.firsts.partition_point(|first| *first <= sample).checked_sub(1);
        let end = self.ends.get(sample).copied().unwrap_or_default();
        let start = sample.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |start| *start);
        let path = archive.and_then(|archive| self.archives.get(archive)).map(|(path, _)| path);
        (path, self.keys.get(start..end).unwrap_or_default())
    }

    /// Why the first row has no caption.
    pub(super) fn why(&self) -> String {
        self.captions.get(0).err().map(|(_, found)| found).unwrap_or_default()
    }

    /// Rows that lie together: so many of an archive.
    pub(super) fn blocks(&self, least: usize) -> Blocks {
        let rows = self.captions.rows();
        let runs = (0..rows).map(|row| {
            let sample = self.captions.picture_of(row);
            let first = row == 0 || self.captions.picture_of(row - 1) < sample;
            (row, first && self.firsts.binary_search(&sample).is_ok())
        });
        Blocks::join(runs, rows, least)
    }

    /// Of what decides the rows, as far as it is cheap to know.
    pub(super) fn print(&self, blocks: &Blocks, bytes: usize) -> u64 {
        let mut fingerprint = Fingerprint::new("webdataset");
        self.captions.print(&mut fingerprint);
        fingerprint.field(self.keys.as_bytes());
        for picture in &self.pictures {
            if let Lies::At { archive, offset, len } = *picture {
                [u64::from(archive), offset, u64::from(len)].into_iter().for_each(|n| fingerprint.number(n));
            }
        }
        for row in blocks.starts() {
            if let Some(Lies::At { archive, offset, len }) = self.picture(*row) {
                let first = self.bytes(archive, offset, (len as usize).min(bytes));
                fingerprint.field(&first.unwrap_or_default());
            }
        }
        fingerprint.value()
    }
}

impl Sample {
    /// Takes a file of the sample.
    fn take(&mut self, ending: &str, archive: u32, given: Option<&str>, member: Member<'_>) {
        let caption = CAPTIONS.iter().position(|kind| *kind == ending);
        if !PICTURES.contains(&ending) && caption.is_none() {
            return;
        }
        if self.endings.iter().any(|before| before == ending) {
            self.twice = Some(format!("it has two files .{ending}"));
            return;
        }
        self.endings.push(ending.to_owned());
        let Some(rank) = caption else {
            let len = u32::try_from(member.len).unwrap_or(u32::MAX);
            self.picture.get_or_insert(Lies::At { archive, offset: member.offset, len });
            return;
        };
        // The presets name the usual column, which no one need mean.
        let named = given.filter(|given| *given != "caption");
        let wanted = if named.is_some() { ending == "json" } else { true };
        if wanted && self.caption.as_ref().is_none_or(|(before, _)| rank < *before) {
            self.caption = Some((rank, read(ending, named, member)));
        }
    }
}

/// The captions in a file.
fn read(ending: &str, named: Option<&str>, member: Member<'_>) -> Found {
    if member.len > MAX_BYTES {
        return Err((
            "too_many_bytes",
            format!("the .{ending} has {}, the limit is {MAX_BYTES}", count(member.len, "byte")),
        ));
    }
    let mut bytes = Vec::with_capacity(member.len as usize);
    let read = member.bytes.take(MAX_BYTES).read_to_end(&mut bytes);
    read.map_err(|e| ("read_error", format!("the .{ending}: {e}")))?;
    if ending == "json" { text::json(&bytes, named) } else { text::plain(&bytes) }
}

/// A file's key and what comes after its dot; nothing for a hidden file, or one without an ending.
fn parts(name: &str) -> Option<(&str, &str)> {
    let base = name.rfind('/').map_or(0, |at| at + 1);
    let dot = base + name[base..].find('.').filter(|at| *at > 0)?;
    Some((&name[..dot], &name[dot + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_endings() {
        for (name, wanted) in [
            ("a.jpg", Some(("a", "jpg"))),
            ("./x.y/a.seg.png", Some(("./x.y/a", "seg.png"))),
            ("x/.hidden.jpg", None),
            ("x/README", None),
            ("", None),
            ("caf\u{e9}.txt", Some(("caf\u{e9}", "txt"))),
        ] {
            assert_eq!(parts(name), wanted, "{name}");
        }
    }
}
