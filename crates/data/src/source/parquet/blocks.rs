//! A file as the parquet reader wants it: read at any place by many threads, with no place of its own.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::source::positioned;

/// More files than this are not held open: a process may have some thousand open at most.
const HELD_OPEN: usize = 200;

/// A file.
#[derive(Debug)]
pub(super) struct Blocks {
    path: PathBuf,
    /// `None`: opened for each read.
    file: Option<File>,
    len: u64,
}

impl Blocks {
    /// `file`, which is one of so many.
    pub(super) fn new(path: &Path, file: File, of: usize) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { path: path.to_path_buf(), file: (of <= HELD_OPEN).then_some(file), len })
    }

    /// Bytes of the file when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes from `offset` on.
    pub(super) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len) {
            let text = format!("{len} bytes at {offset} of a file of {} bytes", self.len);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        let mut bytes = vec![0; len];
        self.with(|file| positioned::read_exact_at(file, &mut bytes, offset))?;
        Ok(bytes)
    }

    fn with<T>(&self, f: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        match &self.file {
            Some(file) => f(file),
            None => f(&File::open(&self.path)?),
        }
    }
}

/// Reads on from an offset.
pub(super) struct From {
    blocks: Arc<Blocks>,
    offset: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.blocks.with(|file| positioned::read_at(file, buffer, self.offset))?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// A file that remembers which of its bytes it handed out: a value that is part of them lies in the file as it
/// is, and where is known.
pub(super) struct Tap {
    blocks: Arc<Blocks>,
    /// The first bytes handed out (a dictionary, if there is one) and the last.
    seen: Mutex<[Option<(u64, Bytes)>; 2]>,
}

impl Tap {
    pub(super) fn new(blocks: Arc<Blocks>) -> Self {
        Self { blocks, seen: Mutex::default() }
    }

    /// Where `value` lies in the file, if it is part of what was handed out.
    pub(super) fn place(&self, value: &[u8]) -> Option<u64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |(offset, bytes): &(u64, Bytes)| {
            // Both are held, so equal addresses are equal bytes.
            let from = (value.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
            (from + value.len() <= bytes.len()).then_some(offset + from as u64)
        };
        seen.iter().flatten().find_map(place)
    }
}

impl Length for Tap {
    fn len(&self) -> u64 {
        self.blocks.len
    }
}

impl ChunkReader for Tap {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(From { blocks: self.blocks.clone(), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.blocks.read(start, length).map_err(|e| ParquetError::General(e.to_string()))?;
        let bytes = Bytes::from(bytes);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let at = usize::from(seen[0].is_some());
        seen[at] = Some((start, bytes.clone()));
        Ok(bytes)
    }
}
