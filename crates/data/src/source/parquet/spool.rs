//! An unnamed temporary file that keeps pictures once they are unpacked. It goes with the process.
//!
//! Invariants: what is the same is kept once, wherever in the set it stands; the file takes at most half of the room
//! that was free at first, and no more than pictures in files of that size can take.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use ring::digest;

use crate::scratch::take;
use crate::source::positioned;

/// Less than this is not worth a word.
const SMALL: u64 = 256 << 20;
/// So many bytes may always be unpacked, if there is room.
const ALWAYS: u64 = 1 << 30;
/// And so many times the size of the files: pictures hardly shrink. A few bytes can stand for terabytes.
const GROWTH: u64 = 64;

/// Where unpacked pictures are kept.
#[derive(Debug)]
pub(super) struct Spool {
    file: OnceLock<Option<(File, u64)>>,
    /// Bytes of the files that are unpacked.
    of: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    end: u64,
    /// Where each value lies, by the first half of its SHA-256.
    known: HashMap<u128, u64>,
}

impl Spool {
    /// For the pictures of files of so many bytes.
    pub(super) fn new(of: u64) -> Self {
        Self { file: OnceLock::new(), of, kept: Mutex::default() }
    }

    /// Keeps `bytes` and says where; nothing if there is no room: they are then to be read from the files again.
    ///
    /// # Errors
    /// If the files cannot hold so much, as far as they are what they say.
    pub(super) fn keep(&self, bytes: &[u8]) -> Result<Option<u64>, String> {
        let file = self.file.get_or_init(|| tempfile::tempfile().ok().map(|file| (file, room())));
        let Some((file, room)) = file else { return Ok(None) };
        let (key, len) = (key(bytes), bytes.len() as u64);
        // Held while writing: who finds an offset here finds the bytes there.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (offset, limit) = (kept.end, ALWAYS.max(self.of.saturating_mul(GROWTH)));
        let end = offset.saturating_add(len);
        let Entry::Vacant(place) = kept.known.entry(key) else { return Ok(kept.known.get(&key).copied()) };
        if end > limit {
            let of = self.of;
            return Err(format!(
                "pictures of more than {limit} bytes unpacked in files of {of}: are they damaged?"
            ));
        }
        if end > *room || positioned::write_all_at(file, bytes, offset).is_err() {
            return Ok(None);
        }
        place.insert(offset);
        kept.end = end;
        Ok(Some(offset))
    }

    /// What was kept.
    pub(super) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = take(len);
        match self.file.get() {
            Some(Some((file, _))) => positioned::read_exact_at(file, &mut bytes, offset).map(|()| bytes),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// What a person should know if so many bytes are to be unpacked.
    pub(super) fn note(&self, packed: u64) -> Option<String> {
        let (folder, room) = (std::env::temp_dir(), room());
        let (folder, needed) = (folder.display(), packed >> 20);
        if packed < SMALL {
            None
        } else if packed <= room {
            Some(format!(
                "pictures are compressed in the files: up to {needed} MiB are unpacked into {folder}"
            ))
        } else {
            Some(format!(
                "pictures are compressed in the files, and {folder} has not twice the {needed} MiB they take \
                 unpacked: reading them will be slow. Set TMPDIR to a folder with room"
            ))
        }
    }

    /// Bytes kept.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.kept.lock().unwrap().end
    }
}

/// Equal for equal bytes alone, whoever chose them.
fn key(bytes: &[u8]) -> u128 {
    let hash = digest::digest(&digest::SHA256, bytes);
    hash.as_ref().iter().take(16).fold(0, |key, byte| key << 8 | u128::from(*byte))
}

/// Half of what is free where temporary files lie.
fn room() -> u64 {
    fs4::available_space(std::env::temp_dir()).map_or(0, |free| free / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_and_too_many_are_refused() {
        let spool = Spool::new(1);
        assert_eq!(spool.keep(b"one"), Ok(Some(0)));
        assert_eq!(spool.keep(b"three"), Ok(Some(3)));
        assert_eq!(spool.keep(b"one"), Ok(Some(0)));
        assert_eq!((spool.bytes(), spool.read(3, 5).unwrap()), (8, b"three".to_vec()));
        spool.kept.lock().unwrap().end = ALWAYS - 1;
        assert_eq!(spool.keep(b"three"), Ok(Some(3)));
        assert!(spool.keep(b"ab").unwrap_err().contains("unpacked in files of 1: are they damaged?"));
    }
}
