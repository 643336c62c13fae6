//! The one way from a picture as a source holds it to what the model sees: find the bytes, decode, scale.

use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::name::not_fetched;
use super::{FILE_NAME, Sample, WEB_ADDRESS, base64};
use crate::image::{DecodeOptions, Reject, decode, resize};
use crate::memory::room;
use crate::scratch::{give, take};
use crate::stages::{Stage, timed};

/// Files with more bytes are no pictures: they are not read into memory.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// A picture as a row holds it.
#[derive(Debug)]
pub(crate) enum Picture<'a> {
    /// The text of a field.
    Base64(Cow<'a, [u8]>),
    /// The picture's file, as it is.
    Bytes(Cow<'a, [u8]>),
    /// Where the file is.
    File(PathBuf),
}

impl<'a> Picture<'a> {
    /// Decodes the picture and scales it to `size x size`, into `pixels`.
    pub(crate) fn sample(
        self,
        caption: String,
        size: usize,
        options: &DecodeOptions,
        pixels: &mut [u8],
    ) -> Result<Sample, Reject> {
        let bytes = timed(Stage::Read, || self.into_bytes())?;
        let of_bytes = |reject: Reject| reject.of_bytes(bytes.len());
        let picture = timed(Stage::Decode, || decode(&bytes, options)).map_err(of_bytes)?;
        let original = (picture.width, picture.height);
        timed(Stage::Resize, || resize(&picture, size, pixels)).map_err(of_bytes)?;
        // For the thread's next picture.
        give(picture.pixels);
        if let Cow::Owned(bytes) = bytes {
            give(bytes);
        }
        Ok(Sample { caption, original, warnings: picture.warnings })
    }

    /// The picture's file in memory, for what held it to be let go.
    pub(crate) fn loaded(self) -> Result<Picture<'static>, Reject> {
        Ok(Picture::Bytes(self.into_bytes()?.into_owned().into()))
    }

    fn into_bytes(self) -> Result<Cow<'a, [u8]>, Reject> {
        match self {
            Self::Base64(text) if text.trim_ascii().is_empty() => {
                Err(reject("empty_image", "an empty field").of_bytes(text.len()))
            }
            Self::Base64(text) => {
                room(text.len() as u64 / 4 * 3).map_err(|lack| Reject::from(lack).of_bytes(text.len()))?;
                let bytes =
                    base64::decode(&text).map_err(|detail| no_base64(&text, detail).of_bytes(text.len()))?;
                if let Cow::Owned(text) = text {
                    give(text);
                }
                Ok(Cow::Owned(bytes))
            }
            Self::Bytes(bytes) => Ok(bytes),
            Self::File(path) => read_file(&path).map(Cow::Owned),
        }
    }
}

fn no_base64(text: &[u8], detail: String) -> Reject {
    if let Some(address) = base64::address(text) {
        return reject(WEB_ADDRESS, not_fetched(address));
    }
    if base64::names_a_file(text) {
        let name = String::from_utf8_lossy(text.trim_ascii());
        return reject(FILE_NAME, format!("`{name}` names a file, where base64 is wanted"));
    }
    reject("bad_base64", detail)
}

/// Reads a whole picture file. What is no plain file is not opened: reading a pipe might never end.
fn read_file(path: &Path) -> Result<Vec<u8>, Reject> {
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            reject("missing_file", format!("there is no file {}", path.display()))
        }
        _ => reject("read_error", format!("{}: {e}", path.display())),
    };
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        let what = if about.is_dir() { "a folder" } else { "no plain file" };
        return Err(reject("not_a_file", format!("{} is {what}", path.display())));
    }
    if about.len() > MAX_FILE_BYTES {
        let detail = format!("{} has {} bytes, the limit is {MAX_FILE_BYTES}", path.display(), about.len());
        return Err(reject("too_many_bytes", detail));
    }
    room(about.len())
        .map_err(|lack| Reject::from(lack).of_bytes(usize::try_from(about.len()).unwrap_or(0)))?;
    let mut bytes = take(about.len() as usize);
    bytes.clear();
    let file = File::open(path).map_err(failed)?;
    // A file that grows meanwhile is cut at the limit, and then refused by its decoder.
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A bad sample in the making: its place is the source's to say.
pub(crate) fn reject(reason: &'static str, detail: impl Into<String>) -> Reject {
    Reject { reason, detail: detail.into(), bytes: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_readable_file_is_one_bad_sample() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let picture = Picture::File(dir.path().join(name));
            picture.sample("x".into(), 4, &DecodeOptions::default(), &mut [0; 48]).unwrap_err().reason
        };
        assert_eq!(of("none.jpg"), "missing_file");
        assert_eq!(of(""), "not_a_file");
        std::fs::write(dir.path().join("empty.jpg"), "").unwrap();
        assert_eq!(of("empty.jpg"), "empty_file");
        assert_eq!(of("empty.jpg/x.jpg"), "missing_file");
        assert_eq!(of("a\0b.jpg"), "read_error");
        std::fs::File::create(dir.path().join("big.jpg")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        assert_eq!(of("big.jpg"), "too_many_bytes");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/dev/zero", dir.path().join("zero.jpg")).unwrap();
            assert_eq!(of("zero.jpg"), "not_a_file");
        }
    }
}
