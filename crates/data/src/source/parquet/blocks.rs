//! A file as the parquet reader wants it: read at any place by many threads, with no place of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::header::{self, Header};
use super::page;
use crate::memory::room;
use crate::scratch::take;
use crate::source::positioned;

/// More files than this are not held open: a process may have some thousand open at most.
const HELD_OPEN: usize = 200;

/// A file.
#[derive(Debug)]
pub(crate) struct Blocks {
    path: PathBuf,
    /// `None`: opened for each read.
    file: Option<File>,
    len: u64,
}

impl Blocks {
    /// `file`, which is one of so many.
    pub(crate) fn new(path: &Path, file: File, of: usize) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { path: path.to_path_buf(), file: (of <= HELD_OPEN).then_some(file), len })
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes from `offset` on.
    pub(crate) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len) {
            let text = format!("{len} bytes at {offset} of a file of {} bytes", self.len);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        room(len as u64).map_err(|lack| io::Error::new(io::ErrorKind::OutOfMemory, lack))?;
        let mut bytes = take(len);
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
    /// Where headers of pages are noted, until this one is.
    headers: Option<Headers>,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(headers) = self.headers.take() {
            headers.look(&self.blocks, self.offset)?;
        }
        let read = self.blocks.with(|file| positioned::read_at(file, buffer, self.offset))?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Headers of pages that were read, each with where its page begins. The newest few: a page is read soon after.
#[derive(Clone, Debug, Default)]
struct Headers(Arc<Mutex<VecDeque<(u64, Header)>>>);

impl Headers {
    const KEPT: usize = 8;

    /// Looks at the header at `offset` before anyone believes it.
    fn look(&self, blocks: &Arc<Blocks>, offset: u64) -> io::Result<()> {
        let from = From { blocks: blocks.clone(), offset, headers: None };
        let header = header::read(BufReader::with_capacity(512, from))?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.truncate(Self::KEPT - 1);
        all.push_front((offset + header.len, header));
        Ok(())
    }

    /// The header of the page that begins at `start`.
    fn of(&self, start: u64) -> Option<Header> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(page, _)| *page == start).map(|(_, header)| *header)
    }
}

/// Where a value lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lies {
    /// In the file, at this offset.
    File(u64),
    /// So many bytes from the start of the unpacked dictionary, where many rows may share it.
    Dictionary(usize),
    /// In memory that nobody else knows.
    Nowhere,
}

/// A file that remembers which of its bytes it handed out: a value that is part of them lies in the file as it
/// is, and where is known. It hands out no page that would take too much memory.
pub(super) struct Tap {
    blocks: Arc<Blocks>,
    /// How pages are packed; `None` where none are read.
    codec: Option<Compression>,
    headers: Headers,
    /// The first bytes handed out (a dictionary, if there is one) and the last.
    seen: Mutex<[Option<(u64, Bytes)>; 2]>,
    /// The dictionary that is in use, unpacked.
    dictionary: Mutex<Bytes>,
}

impl Tap {
    /// To read pages that are packed by `codec`; without one, to read what is no page.
    pub(super) fn new(blocks: Arc<Blocks>, codec: Option<Compression>) -> Self {
        Self {
            blocks,
            codec,
            headers: Headers::default(),
            seen: Mutex::default(),
            dictionary: Mutex::default(),
        }
    }

    /// Where `value` lies, which was read through this.
    pub(super) fn place(&self, value: &[u8]) -> Lies {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let in_file = |(offset, bytes): &(u64, Bytes)| within(value, bytes).map(|at| offset + at as u64);
        if let Some(offset) = seen.iter().flatten().find_map(in_file) {
            return Lies::File(offset);
        }
        let dictionary = self.dictionary.lock().unwrap_or_else(PoisonError::into_inner);
        within(value, &dictionary).map_or(Lies::Nowhere, Lies::Dictionary)
    }

    /// Notes the unpacked dictionary that the next values may lie in.
    pub(super) fn note_dictionary(&self, bytes: &Bytes) {
        *self.dictionary.lock().unwrap_or_else(PoisonError::into_inner) = bytes.clone();
    }

    /// Checks the page that `bytes` are. If the reader knew its place from an index, they begin with its header.
    fn check(&self, codec: Compression, start: u64, bytes: &[u8]) -> Result<()> {
        if let Some(header) = self.headers.of(start) {
            return page::check(&header, bytes, codec);
        }
        let header = header::read(bytes)?;
        let packed = usize::try_from(header.len).ok().and_then(|len| bytes.get(len..));
        page::check(&header, packed.unwrap_or_default(), codec)
    }
}

/// Where `value` begins in `bytes`, if it is part of them. Both are held, so equal addresses are equal bytes.
fn within(value: &[u8], bytes: &[u8]) -> Option<usize> {
    let from = (value.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
    (from + value.len() <= bytes.len()).then_some(from)
}

impl Length for Tap {
    fn len(&self) -> u64 {
        self.blocks.len
    }
}

impl ChunkReader for Tap {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let headers = self.codec.map(|_| self.headers.clone());
        Ok(BufReader::new(From { blocks: self.blocks.clone(), offset: start, headers }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.blocks.read(start, length).map_err(|e| ParquetError::General(e.to_string()))?;
        if let Some(codec) = self.codec {
            self.check(codec, start, &bytes)?;
        }
        let bytes = Bytes::from(bytes);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let at = usize::from(seen[0].is_some());
        seen[at] = Some((start, bytes.clone()));
        Ok(bytes)
    }
}
