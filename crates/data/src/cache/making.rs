//! A cache file in the making: pictures are put into a temporary file as they are read, in any order and by any threads, and are
//! read from it from then on. When the last one is there the records follow, everything is brought to the disk, and the file
//! gets its name.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::layout::{ENTRY, Header, PAGE, picture_bytes};
use super::place;
use super::record::Record;
use crate::batch::caught;
use crate::image::{NO_MEMORY, Warnings};
use crate::source::{BadSample, Sample, Source, read_exact_at, write_all_at};

/// Reasons that may not hold the next time.
const PASSING: [&str; 4] = [NO_MEMORY, "read_error", "missing_file", "not_a_file"];

/// Bytes after which the disk is asked to take what was written, so that there is little left to wait for at the end.
const AT_ONCE: u64 = 32 << 20;

/// A file in the making.
#[derive(Debug)]
pub(super) struct Making {
    path: PathBuf,
    key: String,
    temporary: Temporary,
    header: Header,
    pictures: Vec<OnceLock<Entry>>,
    /// Rows that cannot be used, and why.
    bad: Mutex<HashMap<usize, BadSample>>,
    settled: AtomicUsize,
    /// Bytes of pictures written so far.
    written: AtomicU64,
    /// Pictures before this one were settled, or are being read ahead.
    next: AtomicUsize,
    /// Nothing is written any more.
    given_up: AtomicBool,
    whole: Mutex<bool>,
}

/// What is known of a picture.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Kept {
        check: u32,
        original: (u32, u32),
        warnings: Warnings,
    },
    /// It is not in the file: the source says why, row by row.
    Not,
}

/// The file, which goes when it did not get its name.
#[derive(Debug)]
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Once it has its name there is none of this one.
        let _ = fs::remove_file(&self.path);
    }
}

impl Making {
    pub(super) fn begin(
        path: &Path,
        key: &str,
        pictures: usize,
        rows: usize,
        size: usize,
    ) -> io::Result<Self> {
        let temporary = place::temporary(path);
        let file = File::options().read(true).write(true).create_new(true).open(&temporary)?;
        let temporary = Temporary { file, path: temporary };
        // Whoever sweeps leaves it alone.
        let _ = temporary.file.try_lock();
        let records = PAGE as u64 + pictures as u64 * picture_bytes(size);
        let (rows, size) = (rows as u64, size as u64);
        let header =
            Header { pictures: pictures as u64, rows, size, records, index: 0, key: Header::cut(key) };
        Ok(Self {
            path: path.into(),
            key: key.into(),
            temporary,
            header,
            pictures: (0..pictures).map(|_| OnceLock::new()).collect(),
            bad: Mutex::default(),
            settled: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            given_up: AtomicBool::new(false),
            whole: Mutex::new(false),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn is_done(&self) -> bool {
        *self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pictures of which nothing is known; none if it was given up.
    pub(super) fn missing(&self) -> usize {
        if self.given_up.load(Ordering::Relaxed) {
            return 0;
        }
        self.pictures.len() - self.settled.load(Ordering::Acquire)
    }

    /// The next picture that no one has read, nor reads ahead.
    pub(super) fn next_missing(&self) -> Option<usize> {
        while !self.given_up.load(Ordering::Relaxed) {
            let picture = self.next.fetch_add(1, Ordering::Relaxed);
            if self.pictures.get(picture)?.get().is_none() {
                return Some(picture);
            }
        }
        None
    }

    pub(super) fn is_settled(&self, picture: usize) -> bool {
        self.pictures.get(picture).is_none_or(|entry| entry.get().is_some())
    }

    /// Copies a picture that is kept; its size before it was scaled, and remarks.
    pub(super) fn picture(&self, picture: usize, pixels: &mut [u8]) -> Option<((u32, u32), Warnings)> {
        let Some(&Entry::Kept { check, original, warnings }) = self.pictures.get(picture)?.get() else {
            return None;
        };
        read_exact_at(&self.temporary.file, pixels, self.header.picture(picture as u64)).ok()?;
        (crc32fast::hash(pixels) == check).then_some((original, warnings))
    }

    /// Why a row cannot be used, if that is known.
    pub(super) fn bad(&self, row: usize) -> Option<BadSample> {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner).get(&row).cloned()
    }

    /// Keeps what a row was read as. True if it was the last picture that was missing.
    ///
    /// # Errors
    /// If it cannot be written: the file is given up.
    pub(super) fn keep(
        &self,
        row: usize,
        picture: usize,
        read: &Result<Sample, BadSample>,
        caption_is_bad: bool,
        pixels: &[u8],
    ) -> io::Result<bool> {
        if self.given_up.load(Ordering::Relaxed) || self.is_settled(picture) && read.is_ok() {
            return Ok(false);
        }
        match read {
            Ok(sample) => {
                let at = self.header.picture(picture as u64);
                if let Err(e) = write_all_at(&self.temporary.file, pixels, at) {
                    self.give_up();
                    return Err(e);
                }
                self.pass_on(pixels.len() as u64);
                let Sample { original, warnings, .. } = *sample;
                Ok(self.enter(picture, Entry::Kept { check: crc32fast::hash(pixels), original, warnings }))
            }
            Err(bad) => {
                if !PASSING.contains(&bad.reason) {
                    let mut all = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
                    all.insert(row, bad.clone());
                }
                // Another row of the picture may have a caption.
                Ok(!caption_is_bad && self.enter(picture, Entry::Not))
            }
        }
    }

    /// Asks the disk to take what was written, now and then, by a thread of its own: the last one that asks learns of errors.
    fn pass_on(&self, bytes: u64) {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        if before / AT_ONCE != (before + bytes) / AT_ONCE
            && let Ok(file) = self.temporary.file.try_clone()
        {
            let _ = std::thread::Builder::new().spawn(move || file.sync_data());
        }
    }

    /// Leaves a picture to the source. True if it was the last one that was missing.
    pub(super) fn settle(&self, picture: usize) -> bool {
        self.enter(picture, Entry::Not)
    }

    fn enter(&self, picture: usize, entry: Entry) -> bool {
        let new = self.pictures.get(picture).is_some_and(|place| place.set(entry).is_ok());
        new && self.settled.fetch_add(1, Ordering::AcqRel) + 1 == self.pictures.len()
    }

    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        // Room for others; what was kept of it is read from the source again.
        let _ = fs::remove_file(&self.temporary.path);
    }

    /// Writes the records and gives the file its name, once; true if it has it.
    ///
    /// # Errors
    /// If it cannot be written: the file is given up.
    pub(super) fn finish(&self, source: &dyn Source) -> io::Result<bool> {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if *whole || self.given_up.load(Ordering::Relaxed) {
            return Ok(*whole);
        }
        self.write(source).inspect_err(|_| self.give_up())?;
        *whole = true;
        Ok(true)
    }

    fn write(&self, source: &dyn Source) -> io::Result<()> {
        let (file, rows) = (&self.temporary.file, self.header.rows as usize);
        let mut index = Vec::with_capacity(rows * ENTRY);
        let (mut at, mut chunk) = (self.header.records, Vec::new());
        let mut scratch = vec![0; picture_bytes(self.header.size as usize) as usize];
        for row in 0..rows {
            let start = chunk.len();
            self.record(source, row, &mut scratch).encode(&mut chunk);
            let record = &chunk[start..];
            index.extend((at + start as u64).to_le_bytes());
            index.extend((record.len() as u32).to_le_bytes());
            index.extend(crc32fast::hash(record).to_le_bytes());
            if chunk.len() > 1 << 20 {
                write_all_at(file, &chunk, at)?;
                at += chunk.len() as u64;
                chunk.clear();
            }
        }
        write_all_at(file, &chunk, at)?;
        let start = at + chunk.len() as u64;
        write_all_at(file, &index, start)?;
        let header = Header { index: start, ..self.header.clone() };
        // Pictures that are not in it, at the end, and no row.
        if let Some(end) = header.end() {
            file.set_len(end)?;
        }
        header.write(file)?;
        file.sync_all()?;
        fs::rename(&self.temporary.path, &self.path)?;
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Folders cannot be synced everywhere.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// What is known of a row, or can be found out.
    fn record(&self, source: &dyn Source, row: usize, scratch: &mut [u8]) -> Record {
        let lasting = |bad: BadSample| {
            if PASSING.contains(&bad.reason) { Record::Unknown } else { Record::Bad(bad) }
        };
        if let Some(bad) = self.bad(row) {
            return Record::Bad(bad);
        }
        let picture = super::picture_of(source, row);
        let kept = self.pictures.get(picture).and_then(OnceLock::get).copied();
        let asked = caught(|| match kept {
            Some(Entry::Kept { check, original, warnings }) => source
                .caption(row)
                .map(|caption| Record::Good { picture: picture as u64, check, original, warnings, caption }),
            // The picture of another row of it may be good by now: it is not in the file.
            _ => source.read(row, self.header.size as usize, scratch).map(|_| Record::Unknown),
        });
        asked.map_or(Record::Unknown, |asked| asked.unwrap_or_else(lasting))
    }
}
