//! An unnamed temporary file that keeps pictures once they are unpacked. It goes with the process.

use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::positioned;

/// Less than this is not worth a word.
const SMALL: u64 = 256 << 20;

/// Where unpacked pictures are kept. Never holds more than half of the room that was free at first.
#[derive(Debug, Default)]
pub(super) struct Spool {
    file: OnceLock<Option<(File, u64)>>,
    end: AtomicU64,
}

impl Spool {
    /// Keeps `bytes` and says where; nothing if there is no room.
    pub(super) fn keep(&self, bytes: &[u8]) -> Option<u64> {
        let (file, room) =
            self.file.get_or_init(|| tempfile::tempfile().ok().map(|f| (f, room()))).as_ref()?;
        let len = bytes.len() as u64;
        let offset = self.end.fetch_add(len, Ordering::Relaxed);
        if offset.checked_add(len)? > *room {
            return None;
        }
        positioned::write_all_at(file, bytes, offset).ok()?;
        Some(offset)
    }

    /// What was kept.
    pub(super) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
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
}

/// Half of what is free where temporary files lie.
fn room() -> u64 {
    fs4::available_space(std::env::temp_dir()).map_or(0, |free| free / 2)
}
