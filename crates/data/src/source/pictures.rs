//! Pictures to be looked at, with or without captions: one file, or all below a folder.
//!
//! Nothing can be trained on them: the caption of every row is missing, and [`Source::read`] gives an empty one.

use std::path::{Path, PathBuf};

use super::fingerprint::Fingerprint;
use super::folder::beside::file_of as caption_file;
use super::folder::walk::walk;
use super::picture::Picture;
use super::{BadSample, Sample, Source, SourceError};
use crate::image::DecodeOptions;
use crate::text::count;

/// Opened picture files.
#[derive(Debug)]
pub struct Pictures {
    path: PathBuf,
    files: Vec<PathBuf>,
    decode: DecodeOptions,
    notes: Vec<String>,
}

impl Pictures {
    /// The picture `path`, or the pictures below it.
    ///
    /// # Errors
    /// If it cannot be read, or is a folder without pictures.
    pub fn open(path: &Path, decode: DecodeOptions) -> Result<Self, SourceError> {
        let about = std::fs::metadata(path).map_err(|e| SourceError::io(path, e))?;
        if !about.is_dir() {
            return Ok(Self { path: path.into(), files: vec![path.into()], decode, notes: vec![] });
        }
        let found = walk(path)?;
        let notes = found.unreadable.iter().map(|why| format!("not looked at: {why}")).collect();
        let files: Vec<PathBuf> = found.pictures.iter().map(|name| path.join(name)).collect();
        if files.is_empty() {
            return Err(SourceError::not_usable(
                path,
                "is a folder without a picture file: name the table or the folder that is meant",
            ));
        }
        Ok(Self { path: path.into(), files, decode, notes })
    }

    /// True if something in the folder could be captions: metadata, or a `.txt` beside a picture.
    pub fn are_captioned(folder: &Path) -> bool {
        let metadata = ["metadata.csv", "metadata.jsonl"];
        let here = metadata.iter().any(|name| folder.join(name).exists());
        here || walk(folder).is_ok_and(|found| {
            let beside = |name: &PathBuf| caption_file(&folder.join(name)).exists();
            !found.deeper.is_empty() || found.pictures.iter().any(beside)
        })
    }

    fn bad(&self, row: usize, reason: &'static str, detail: String) -> BadSample {
        let file = self.files.get(row).unwrap_or(&self.path);
        let source = file.display().to_string();
        BadSample { reason, detail, place: source.clone(), file: source, bytes: None }
    }
}

impl Source for Pictures {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn caption_chars(&self, _: usize) -> usize {
        0
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        Err(self.bad(row, "empty_caption", "the picture has no caption".into()))
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let Some(file) = self.files.get(row) else {
            return Err(self.bad(row, "read_error", format!("there are {}", count(self.len(), "picture"))));
        };
        let sample = Picture::File(file.clone()).sample(String::new(), size, &self.decode, pixels);
        sample.map_err(|reject| self.bad(row, reject.reason, reject.detail.clone()).seen(&reject))
    }

    fn describe(&self) -> String {
        format!("{} ({}, without captions)", self.path.display(), count(self.len(), "picture"))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint::new("pictures");
        self.files.iter().for_each(|file| fingerprint.field(file.as_os_str().as_encoded_bytes()));
        fingerprint.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_captioned_if_anything_in_it_could_be_captions() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/a.jpg"), "").unwrap();
        std::fs::write(at("readme.txt"), "about").unwrap();
        assert!(!Pictures::are_captioned(dir.path()));
        let pictures = Pictures::open(dir.path(), DecodeOptions::default()).unwrap();
        assert_eq!(pictures.len(), 1);
        assert_eq!(pictures.pictured(0, 4).unwrap_err().reason, "empty_file");
        assert_eq!(pictures.pictured(1, 4).unwrap_err().reason, "read_error");
        std::fs::write(at("sub/a.txt"), "a cat").unwrap();
        assert!(Pictures::are_captioned(dir.path()));
        std::fs::remove_file(at("sub/a.jpg")).unwrap();
        assert!(Pictures::open(dir.path(), DecodeOptions::default()).is_err());
    }
}
