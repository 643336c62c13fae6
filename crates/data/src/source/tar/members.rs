//! The files of an archive, one after another, without reading what they hold.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tar::{Archive, EntryType};

use crate::source::standin::{self, Wanted};
use crate::source::{SourceError, positioned};

/// Where the mark of a tar archive stands in its first header, since 1988.
const MARK: (usize, &[u8]) = (257, b"ustar");
/// Two blocks of zeros end an archive.
const END: u64 = 1024;

/// A plain file of an archive.
pub(super) struct Member<'a> {
    /// Its name, with its folders.
    pub(super) name: String,
    /// Where its bytes lie in the archive.
    pub(super) offset: u64,
    pub(super) len: u64,
    /// To read them now.
    pub(super) bytes: &'a mut dyn Read,
}

/// Shows `each` the plain files of an archive, in order. Returns a warning, if its end is missing.
pub(super) fn read(
    path: &Path,
    file: &File,
    each: &mut dyn FnMut(Member<'_>),
) -> Result<Option<String>, SourceError> {
    let whole = check(path, file)?;
    let mut archive = Archive::new(file);
    let broken = |e: std::io::Error| {
        SourceError::not_usable(
            path,
            format!("cannot be read as a tar archive: {e}. Is it damaged, or another kind of file?"),
        )
    };
    for entry in archive.entries_with_seek().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let (offset, len) = (entry.raw_file_position(), entry.size());
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if offset.checked_add(len).is_none_or(|end| end > whole) {
            let shown = crate::text::printable(name.as_bytes(), 200);
            let found = format!(
                "is cut: `{shown}` has {len} bytes from byte {offset} on, and the file ends at byte {whole}. Copy or \
                 download it again"
            );
            return Err(SourceError::not_usable(path, found));
        }
        if matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous) {
            each(Member { name, offset, len, bytes: &mut entry });
        }
    }
    Ok((!ends(file, whole)).then(|| {
        format!("{} has no end mark: is it cut between two files? What is there is used", path.display())
    }))
}

/// Refuses what is no archive; its length.
fn check(path: &Path, file: &File) -> Result<u64, SourceError> {
    let about = file.metadata().map_err(|e| SourceError::io(path, e))?;
    let mut head = [0; 512];
    let read = positioned::read_at(file, &mut head, 0).unwrap_or(0);
    let (at, mark) = MARK;
    if read < head.len() || !head[at..].starts_with(mark) {
        standin::refuse(path, file, Wanted::Tar)?;
    }
    if read < head.len() {
        return Err(SourceError::not_usable(path, format!("is no tar archive: it has {read} bytes")));
    }
    Ok(about.len())
}

fn ends(file: &File, whole: u64) -> bool {
    let mut tail = [1; END as usize];
    let start = whole.checked_sub(END);
    start.is_some_and(|start| positioned::read_exact_at(file, &mut tail, start).is_ok())
        && tail == [0; END as usize]
}
