//! A cache file that is whole. Everything that is read of it is held against its checksum.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::layout::{ENTRY, Header, picture_bytes};
use super::record::Record;
use crate::source::{BadSample, Sample, read_exact_at};

/// Records are not longer: captions and messages are not.
const RECORD: usize = 16 << 20;

/// A whole file.
#[derive(Debug)]
pub(super) struct Ready {
    path: PathBuf,
    file: File,
    header: Header,
    bytes: u64,
}

/// Why a file is not used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Missing,
    /// It is no cache.
    Foreign,
    /// It was made of other data, or in another way.
    Stale,
    /// Part of it is missing or changed.
    Damaged,
    /// The system does not give it.
    Unread(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not there"),
            Self::Foreign => f.write_str("is no cache"),
            Self::Stale => f.write_str("was made of other data or with other settings"),
            Self::Damaged => f.write_str("is damaged"),
            Self::Unread(why) => write!(f, "cannot be read ({why})"),
        }
    }
}

impl Ready {
    /// Opens the file of a key.
    pub(super) fn open(path: &Path, key: &str) -> Result<Self, Refused> {
        let unread = |e: std::io::Error| Refused::Unread(e.to_string());
        match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(Refused::Missing),
            Err(e) => return Err(unread(e)),
            // A pipe would block.
            Ok(about) if !about.is_file() => return Err(Refused::Foreign),
            Ok(_) => {}
        }
        let file = File::open(path).map_err(unread)?;
        let header = match Header::read(&file).map_err(unread)? {
            None => return Err(Refused::Foreign),
            Some(None) => return Err(Refused::Damaged),
            Some(Some(header)) => header,
        };
        if header.key != Header::cut(key) {
            return Err(Refused::Stale);
        }
        let bytes = file.metadata().map_err(unread)?.len();
        if header.end() != Some(bytes) || header.picture(header.pictures) > header.records {
            return Err(Refused::Damaged);
        }
        Ok(Self { path: path.into(), file, header, bytes })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads a row; none if the source is to be asked.
    ///
    /// # Errors
    /// If the file is not as it was written: what is wrong with it.
    pub(super) fn read(
        &self,
        row: usize,
        pixels: &mut [u8],
    ) -> Result<Option<Result<Sample, BadSample>>, String> {
        match self.record(row)? {
            Record::Unknown => Ok(None),
            Record::Bad(bad) => Ok(Some(Err(bad))),
            Record::Good { picture, check, original, warnings, caption } => {
                let fits = picture < self.header.pictures
                    && pixels.len() as u64 == picture_bytes(self.header.size as usize);
                if !fits {
                    return Err(format!("the record of row {row} is damaged"));
                }
                let read = read_exact_at(&self.file, pixels, self.header.picture(picture));
                read.map_err(|e| format!("picture {picture} cannot be read: {e}"))?;
                if crc32fast::hash(pixels) != check {
                    return Err(format!("picture {picture} is damaged"));
                }
                Ok(Some(Ok(Sample { caption, original, warnings })))
            }
        }
    }

    fn record(&self, row: usize) -> Result<Record, String> {
        let damaged = || format!("the record of row {row} is damaged");
        let unread = |e: std::io::Error| format!("the record of row {row} cannot be read: {e}");
        let mut entry = [0; ENTRY];
        read_exact_at(&self.file, &mut entry, self.header.index + (row * ENTRY) as u64).map_err(unread)?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = entry;
        let at = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let len = u32::from_le_bytes([i, j, k, l]) as usize;
        let check = u32::from_le_bytes([m, n, o, p]);
        if len > RECORD || at.checked_add(len as u64).is_none_or(|end| end > self.header.index) {
            return Err(damaged());
        }
        let mut small = [0; 512];
        let mut large = Vec::new();
        let bytes = if len <= small.len() {
            &mut small[..len]
        } else {
            large.resize(len, 0);
            &mut large[..]
        };
        read_exact_at(&self.file, bytes, at).map_err(unread)?;
        if crc32fast::hash(bytes) != check {
            return Err(damaged());
        }
        Record::decode(bytes).ok_or_else(damaged)
    }
}
