//! Captions in `.txt` files: `cat.txt` (or `cat.TXT`) beside `cat.jpg`.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::items::{Item, Items};
use crate::source::SourceError;
use crate::source::TextOptions;
use crate::source::encoding::Encoding;
use crate::source::unmarked;

/// Larger files are no captions.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the captions beside `pictures`, which are relative to `folder`. A picture without one is left out.
pub(super) fn read(folder: &Path, pictures: &[PathBuf], options: &TextOptions) -> Result<Items, SourceError> {
    let mut items = Items::default();
    for name in pictures {
        match caption(&file_of(&folder.join(name)), options.encoding) {
            Caption::None => continue,
            Caption::Text(text) => items.captions.push([text]),
            Caption::Bad(reason, found) => items.captions.push_bad(reason, found),
        }
        items.pictures.push(Item { name: name.clone(), outside: false, line: None });
    }
    Ok(items)
}

/// The file with the caption of `picture`: the first of these that is there, else the usual one.
pub(in crate::source) fn file_of(picture: &Path) -> PathBuf {
    let endings = ["txt", "TXT", "Txt", "TXt", "tXT", "txT", "tXt", "TxT"];
    let mut files = endings.map(|ending| picture.with_extension(ending)).into_iter();
    files.find(|file| file.symlink_metadata().is_ok()).unwrap_or_else(|| picture.with_extension("txt"))
}

enum Caption {
    None,
    Text(String),
    Bad(&'static str, String),
}

fn caption(path: &Path, encoding: Encoding) -> Caption {
    let bytes = match bytes(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Caption::None,
        Err((reason, found)) => return Caption::Bad(reason, found),
    };
    match encoding.decode_marked(&bytes) {
        Ok(text) if text.contains('\0') => {
            let wide = unmarked::wide(&bytes).map_or("is no text: it has a byte 0".into(), unmarked::advice);
            Caption::Bad("bad_encoding", format!("{} {wide}", path.display()))
        }
        Ok(text) => Caption::Text(text.into_owned()),
        Err(bad) => {
            let line = bytes[..bad.at.min(bytes.len())].iter().filter(|b| **b == b'\n').count() + 1;
            let name = encoding.name();
            let wide = unmarked::wide(&bytes)
                .map_or(String::new(), |wide| format!("; it {}", unmarked::advice(wide)));
            let found =
                format!("{}: line {line}: `{}` is no text in {name}{wide}", path.display(), bad.found);
            Caption::Bad("bad_encoding", found)
        }
    }
}

/// The file's bytes; nothing if there is no such file.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>, (&'static str, String)> {
    let failed = |e: std::io::Error| ("read_error", format!("{}: {e}", path.display()));
    let about = match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        about => about.map_err(failed)?,
    };
    if !about.is_file() || about.len() > MAX_BYTES {
        let found = format!("{} is no file of at most {MAX_BYTES} bytes", path.display());
        return Err(("read_error", found));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|f| f.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(failed)?;
    Ok(Some(bytes))
}
