//! Decoded pictures in a file, so that each is decoded once: while the first epoch trains, or beforehand.
//!
//! A [`Cached`] is a source that reads from such a file what it can, and else from the source that it stands for, with the
//! same pixels, captions and bad samples. The file is keyed by what decides pixels: the source's content, and how pictures are
//! decoded and scaled. Captions are kept as text, so that no vocabulary is part of the key.
//!
//! Invariants: under a cache's name stands a whole file or none (`making.rs`); no byte of it is used that does not have
//! the checksum it was written with (`ready.rs`); reading never depends on it: whatever is amiss with the file, the source is
//! read, and [`Cached::trouble`] says so once.
//!
//! Files are read at positions instead of being mapped: a page of a mapped file that was cut meanwhile ends the process, and
//! a picture is copied into its batch in either case.

mod key;
mod layout;
mod making;
mod place;
mod ready;
mod record;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use crate::image::DecodeOptions;
use crate::source::{BadSample, Blocks, Groups, Repeats, Sample, Source};
use crate::stages::{Stage, timed};
use crate::text::count;
use making::Making;
pub use place::{FOLDER_BYTES, Place, folder};
use ready::{Ready, Refused};

/// Smaller sets are not kept where nobody asked for it: decoding them again takes no time.
pub const SMALL: u64 = 16 << 20;

/// How pictures of a cache are made.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Where the file is.
    pub place: Place,
    /// Side of the pictures, in pixels.
    pub size: usize,
    /// How they are decoded.
    pub decode: DecodeOptions,
    /// Make the file if it is not there.
    pub make: bool,
}

/// Why a place that was named cannot hold a cache.
#[derive(Debug, Error)]
pub enum CacheError {
    /// Another file stands there.
    #[error("{}: it is no cache of decoded pictures, and is not overwritten; name another file with data_config.cache", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written there.
    #[error("cannot write the cache of decoded pictures {}: {source}; name another place with data_config.cache, or off", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no room for it.
    #[error(
        "no room for the cache of decoded pictures {}: it takes {needed} bytes, {free} are free; name another place with \
         data_config.cache, or off", path.display()
    )]
    Room {
        /// The file.
        path: PathBuf,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The files behind a source cannot be told from changed ones.
    #[error(
        "{what}: its pictures are drawn, or lie in files that it does not hold itself, so there can be no cache of them"
    )]
    Untold {
        /// The source.
        what: String,
    },
}

/// A source whose pictures are, or are being, kept.
pub struct Cached {
    source: Arc<dyn Source>,
    wish: Wish,
    store: Store,
    /// What is amiss, until it was asked for.
    trouble: Mutex<Option<String>>,
    told: AtomicBool,
}

#[derive(Debug)]
enum Store {
    Ready(Ready),
    Making(Making),
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("of", &self.source.describe()).field("store", &self.store).finish()
    }
}

/// What [`open`] came to.
pub struct Opened {
    /// The source to read from: with a cache, or as it was.
    pub source: Arc<dyn Source>,
    /// The cache.
    pub cache: Option<Arc<Cached>>,
    /// What a person should know.
    pub note: Option<String>,
}

/// Opens the cache of a source, or begins to make it.
///
/// # Errors
/// If the place was named, and cannot hold one. Where none was named, there is none then.
pub fn open(source: Arc<dyn Source>, wish: &Wish) -> Result<Opened, CacheError> {
    let automatic = matches!(wish.place, Place::Automatic(_));
    let without = |source, note| Ok(Opened { source, cache: None, note });
    let Some(key) = key::of(&*source, wish) else {
        let what = source.describe();
        return if automatic { without(source, None) } else { Err(CacheError::Untold { what }) };
    };
    let pictures = pictures_of(&*source);
    let bytes = layout::bytes(pictures, source.len(), wish.size);
    if automatic && bytes < SMALL {
        return without(source, None);
    }
    let path = wish.place.path(&key);
    let old = match Ready::open(&path, &key) {
        Ok(ready) => {
            place::used(&path);
            let about = format!(
                "cache: {} ({}, {})",
                path.display(),
                count(pictures, "picture"),
                size_of(ready.bytes())
            );
            return Ok(Cached::new(source, wish, Store::Ready(ready)).opened(Some(about)));
        }
        Err(Refused::Foreign) if !automatic => return Err(CacheError::Foreign { path }),
        Err(_) if !wish.make => return without(source, None),
        Err(Refused::Missing) => String::new(),
        Err(refused) => format!(" instead of one that {refused}"),
    };
    match begin(&wish.place, &path, &key, pictures, source.len(), wish.size, bytes) {
        Ok(making) => {
            let about = format!(
                "cache: {} is made{old} while the pictures are read for the first time ({})",
                path.display(),
                size_of(bytes)
            );
            Ok(Cached::new(source, wish, Store::Making(making)).opened(Some(about)))
        }
        Err(error) if automatic => without(source, Some(format!("no cache: {error}"))),
        Err(error) => Err(error),
    }
}

fn begin(
    place: &Place,
    path: &Path,
    key: &str,
    pictures: usize,
    rows: usize,
    size: usize,
    bytes: u64,
) -> Result<Making, CacheError> {
    let write = |source| CacheError::Write { path: path.into(), source };
    place.prepare(path, bytes).map_err(write)?;
    if let Some(free) = place::free(path).filter(|free| *free / 2 < bytes) {
        return Err(CacheError::Room { path: path.into(), needed: bytes, free });
    }
    Making::begin(path, key, pictures, rows, size).map_err(write)
}

/// Bytes for a person.
fn size_of(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// How many pictures there are places for. Rows that share a picture by themselves share its place; that other rows show the same
/// may be told by a name alone.
fn pictures_of(source: &dyn Source) -> usize {
    source.groups().map_or_else(|| source.len(), Groups::pictures)
}

/// The number of a row's picture.
fn picture_of(source: &dyn Source, row: usize) -> usize {
    source.groups().map_or(row, |groups| groups.picture_of(row))
}

/// A row that shows a picture, if possible one with a caption.
fn row_of(source: &dyn Source, picture: usize) -> Option<usize> {
    let mut rows = source.groups().map_or(picture..picture + 1, |groups| groups.rows_of(picture));
    let first = rows.clone().next().filter(|row| *row < source.len());
    rows.find(|&row| source.caption_chars(row) > 0).or(first)
}

impl Cached {
    fn new(source: Arc<dyn Source>, wish: &Wish, store: Store) -> Self {
        Self { source, wish: wish.clone(), store, trouble: Mutex::default(), told: AtomicBool::new(false) }
    }

    fn opened(self, note: Option<String>) -> Opened {
        let cache = Arc::new(self);
        Opened { source: cache.clone(), cache: Some(cache), note }
    }

    /// Pictures that it has a place for.
    pub fn pictures(&self) -> usize {
        pictures_of(&*self.source)
    }

    /// True if the file is whole.
    pub fn is_whole(&self) -> bool {
        match &self.store {
            Store::Ready(_) => true,
            Store::Making(making) => making.is_done(),
        }
    }

    /// Pictures that are still to be read until the file is whole.
    pub fn missing(&self) -> usize {
        match &self.store {
            Store::Ready(_) => 0,
            Store::Making(making) => making.missing(),
        }
    }

    /// Reads the pictures that no one has read yet, with this thread and `others` more, and makes the file whole. `step` is told
    /// now and then how many are missing, and ends it early by `false`. True if the file is whole.
    pub fn complete(&self, others: usize, step: &mut dyn FnMut(usize) -> bool) -> bool {
        let goes_on = AtomicBool::new(true);
        std::thread::scope(|scope| {
            for _ in 0..others {
                // Without a thread, the others do its work.
                let work = || {
                    loop {
                        if !goes_on.load(Ordering::Relaxed) || !self.read_next() {
                            break;
                        }
                    }
                };
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            while step(self.missing()) && self.read_next() {}
            goes_on.store(self.missing() == 0, Ordering::Relaxed);
        });
        match &self.store {
            Store::Ready(_) => true,
            Store::Making(making) => making.missing() == 0 && self.finished(making),
        }
    }

    fn read_next(&self) -> bool {
        match &self.store {
            Store::Ready(_) => false,
            Store::Making(making) => self.read_one(making),
        }
    }

    /// What is amiss with the file, once.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn amiss(&self, found: String) {
        if !self.told.swap(true, Ordering::Relaxed) {
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
    }

    /// Copies whole pictures, in order, from number `first` on, and says of each whether it is there; what is not there is black.
    ///
    /// # Panics
    /// If `pixels` is no whole number of pictures.
    pub fn read_pictures(&self, first: usize, pixels: &mut [u8]) -> Vec<bool> {
        let bytes = self.wish.size * self.wish.size * 3;
        assert_eq!(pixels.len() % bytes, 0, "{} bytes are no whole pictures of {bytes}", pixels.len());
        let read = |(i, pixels): (usize, &mut [u8])| {
            let there = match &self.store {
                Store::Ready(ready) => row_of(&*self.source, first + i)
                    .is_some_and(|row| matches!(ready.read(row, pixels), Ok(Some(Ok(_))))),
                Store::Making(making) => making.picture(first + i, pixels).is_some(),
            };
            if !there {
                pixels.fill(0);
            }
            there
        };
        pixels.chunks_exact_mut(bytes).enumerate().map(read).collect()
    }

    fn read_ready(&self, ready: &Ready, row: usize, pixels: &mut [u8]) -> Option<Result<Sample, BadSample>> {
        match timed(Stage::Read, || ready.read(row, pixels)) {
            Ok(found) => found,
            Err(found) => {
                let path = ready.path().display();
                self.amiss(format!(
                    "{path}: {found}; that row and others like it are read from the source. Remove the file, and it is made anew"
                ));
                None
            }
        }
    }

    fn read_making(&self, making: &Making, row: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let picture = picture_of(&*self.source, row);
        if let Some((original, warnings)) = timed(Stage::Read, || making.picture(picture, pixels)) {
            return Ok(Sample { caption: self.source.caption(row)?, original, warnings });
        }
        if let Some(bad) = making.bad(row) {
            return Err(bad);
        }
        let read = self.source.read(row, self.wish.size, pixels);
        let caption_is_bad = read.is_err() && self.source.caption(row).is_err();
        match making.keep(row, picture, &read, caption_is_bad, pixels) {
            Ok(false) => {}
            // The last one that was missing.
            Ok(true) => drop(self.finished(making)),
            Err(e) => self.amiss(unwritten(making, &e)),
        }
        read
    }

    /// Makes the file whole; false if that cannot be.
    fn finished(&self, making: &Making) -> bool {
        if key::of(&*self.source, &self.wish).as_deref() != Some(making.key()) {
            making.give_up();
            let path = making.path().display();
            self.amiss(format!("no cache {path} was made: the data changed while they were read"));
            return false;
        }
        match making.finish(&*self.source) {
            Ok(whole) => whole,
            Err(e) => {
                self.amiss(unwritten(making, &e));
                false
            }
        }
    }
}

fn unwritten(making: &Making, e: &std::io::Error) -> String {
    let path = making.path().display();
    format!("the cache {path} cannot be written and is given up: {e}. The run does not need it")
}

impl Source for Cached {
    fn len(&self) -> usize {
        self.source.len()
    }

    fn caption_chars(&self, row: usize) -> usize {
        self.source.caption_chars(row)
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        self.source.caption(row)
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        if size != self.wish.size || row >= self.len() {
            return self.source.read(row, size, pixels);
        }
        match &self.store {
            Store::Ready(ready) => {
                self.read_ready(ready, row, pixels).unwrap_or_else(|| self.source.read(row, size, pixels))
            }
            Store::Making(making) => self.read_making(making, row, pixels),
        }
    }

    fn read_ahead(&self) -> bool {
        let Store::Making(making) = &self.store else { return false };
        // A short run over much data is not to decode all of it.
        making.missing() <= self.pictures() / 2 && self.read_one(making)
    }

    fn captions_of(&self, row: usize) -> Vec<String> {
        self.source.captions_of(row)
    }

    fn groups(&self) -> Option<&Groups> {
        self.source.groups()
    }

    fn repeats(&self) -> Option<&Repeats> {
        self.source.repeats()
    }

    fn unknown_repeats(&self) -> Option<String> {
        self.source.unknown_repeats()
    }

    fn blocks(&self) -> Option<&Blocks> {
        self.source.blocks()
    }

    fn bytes(&self) -> u64 {
        self.source.bytes()
    }

    fn number(&self, row: usize) -> usize {
        self.source.number(row)
    }

    fn describe(&self) -> String {
        self.source.describe()
    }

    fn notes(&self) -> Vec<String> {
        self.source.notes()
    }

    fn fingerprint(&self) -> u64 {
        self.source.fingerprint()
    }
}

impl Cached {
    /// Reads a picture that no one has read; false if there is none.
    fn read_one(&self, making: &Making) -> bool {
        let Some(picture) = making.next_missing() else { return false };
        match row_of(&*self.source, picture) {
            Some(row) => {
                let mut pixels = vec![0; self.wish.size * self.wish.size * 3];
                let read = crate::batch::caught(|| self.read_making(making, row, &mut pixels));
                if read.is_err() || !making.is_settled(picture) {
                    // A panic, or a caption that no row of the picture has: the source is asked each time.
                    self.settled(making, picture);
                }
            }
            None => self.settled(making, picture),
        }
        true
    }

    fn settled(&self, making: &Making, picture: usize) {
        if making.settle(picture) {
            self.finished(making);
        }
    }
}
