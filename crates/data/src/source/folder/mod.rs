//! A folder of picture files with captions beside them: in `metadata.csv` or `metadata.jsonl`, or a `.txt` file
//! of the same name beside each picture.
//!
//! Captions are read when the folder is opened; pictures are looked at one by one, when their row is read. A
//! name that leads out of the folder is never opened.

pub(super) mod beside;
mod items;
mod layout;
mod lines;
mod metadata;
mod strays;
pub(super) mod walk;

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::fingerprint::Fingerprint;
use super::groups::{Captions, Groups};
use super::name::leads_out;
use super::picture::Picture;
use super::repeats::Finder;
use super::splits::SplitNames;
use super::{BadSample, Repeats, Sample, Source, SourceError, TextOptions};
use crate::image::DecodeOptions;
use crate::text::count;
pub use items::without_captions;
use items::{Item, Items, identity};
use layout::Scope;

/// The splits of a folder that were asked for.
#[derive(Debug)]
pub struct FolderSplits {
    /// To train on.
    pub train: Folder,
    /// To validate on, if the folder has a split for that.
    pub validation: Option<Folder>,
    /// Which splits were taken, for a person.
    pub note: Option<String>,
    /// What is left out, or trained on although its name speaks against it, a line each.
    pub warnings: Vec<String>,
}

/// An opened folder, or a split of one.
#[derive(Debug)]
pub struct Folder {
    /// File names are relative to this.
    base: PathBuf,
    /// Where captions come from: the metadata file, or the folder.
    origin: PathBuf,
    /// The sub-folder of `base` that all of it lies in.
    under: Option<String>,
    pictures: Vec<Item>,
    captions: Captions,
    /// Names of one file.
    repeats: Option<Repeats>,
    decode: DecodeOptions,
    notes: Vec<String>,
    fingerprint: u64,
    stamp: u64,
}

impl Folder {
    /// Opens the splits of `path`: its sub-folders `train`, `validation` and so on (in any case), else all of it.
    ///
    /// # Errors
    /// If it is no folder, has no pictures, no captions, or two files of metadata; if the metadata cannot be read as a
    /// whole; or if pictures to train on lie in a folder called as a split that is not trained on. A file that is missing, lies outside of the folder or is no picture is a [`BadSample`].
    pub fn open(path: &Path, names: &SplitNames, options: &TextOptions) -> Result<FolderSplits, SourceError> {
        layout::refuse_others(path)?;
        let there = layout::splits(path, names)?;
        let chosen = names.choose(path, &there)?;
        let open = |split: &Option<String>| Self::open_scope(&Scope::find(path, split.as_deref())?, options);
        let train = open(&chosen.train)?;
        let outside = if there.is_empty() { None } else { strays::outside(path, &there)? };
        let warnings = Vec::from_iter(outside).into_iter().chain(strays::held_out(&train)?).collect();
        Ok(FolderSplits {
            train,
            validation: if chosen.validation.is_some() { Some(open(&chosen.validation)?) } else { None },
            note: chosen.note,
            warnings,
        })
    }

    fn open_scope(scope: &Scope, options: &TextOptions) -> Result<Self, SourceError> {
        let Items { pictures, captions, notes } = items::read(scope, options)?;
        let (mut fingerprint, mut finder) = (Fingerprint::new("folder"), Finder::default());
        let mut stamp = Fingerprint::new("files");
        captions.print(&mut fingerprint);
        for item in &pictures {
            fingerprint.field(item.name.as_os_str().as_encoded_bytes());
            let file = item.file(&scope.base);
            fingerprint.number(file.as_ref().map_or(u64::MAX, Metadata::len));
            stamp.file(file.as_ref());
            finder.look(file.as_ref().and_then(identity));
        }
        let repeats = finder.found().and_then(|repeats| repeats.of_captions(&captions));
        Ok(Self {
            base: scope.base.clone(),
            origin: scope.origin(),
            under: scope.under.clone(),
            pictures,
            captions,
            repeats,
            decode: options.decode.clone(),
            notes,
            fingerprint: fingerprint.value(),
            stamp: stamp.value(),
        })
    }

    /// The file of `row`, or why it is not looked at.
    fn file(&self, row: usize) -> Result<PathBuf, BadSample> {
        let item = self.pictures.get(self.captions.picture_of(row)).filter(|_| row < self.len());
        match item {
            Some(Item { name, outside: false, .. }) => Ok(self.base.join(name)),
            Some(Item { name, .. }) => Err(self.bad(row, "outside_folder", leads_out(name, &self.base))),
            None => Err(self.bad(row, "read_error", format!("the source has {}", count(self.len(), "row")))),
        }
    }

    fn caption_of(&self, row: usize) -> Result<&str, BadSample> {
        self.captions.get(row).map_err(|(reason, detail)| self.bad(row, reason, detail))
    }

    fn bad(&self, row: usize, reason: &'static str, detail: String) -> BadSample {
        let place = match self.pictures.get(self.captions.picture_of(row)) {
            Some(Item { line: Some(line), .. }) => format!("{}:{line} (row {row})", self.origin.display()),
            Some(Item { name, .. }) => format!("{} (row {row})", self.base.join(name).display()),
            None => format!("{} (row {row})", self.origin.display()),
        };
        BadSample { reason, detail, place, file: self.origin.display().to_string(), bytes: None }
    }
}

impl Source for Folder {
    fn len(&self) -> usize {
        self.captions.rows()
    }

    fn caption_chars(&self, row: usize) -> usize {
        self.captions.chars(row)
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        self.caption_of(row).map(str::to_owned)
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let caption = self.caption(row)?;
        Picture::File(self.file(row)?)
            .sample(caption, size, &self.decode, pixels)
            .map_err(|reject| self.bad(row, reject.reason, reject.detail.clone()).seen(&reject))
    }

    fn groups(&self) -> Option<&Groups> {
        self.captions.groups()
    }

    fn repeats(&self) -> Option<&Repeats> {
        self.repeats.as_ref()
    }

    fn unknown_repeats(&self) -> Option<String> {
        Some("files of equal bytes under different names".into())
    }

    fn describe(&self) -> String {
        let (rows, pictures) = (self.len(), self.pictures.len());
        let captions = if rows > pictures { format!(", {rows} captions") } else { String::new() };
        format!("folder {} ({}{captions})", self.origin.display(), count(pictures, "picture"))
    }

    fn notes(&self) -> Vec<String> {
        let repeats = self.repeats.as_ref().map(Repeats::note);
        self.notes.iter().cloned().chain(repeats).collect()
    }

    /// Covers the captions, the names and sizes of the files, and the order; not the pixels.
    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Covers length and time of the last change of each file.
    fn stamp(&self) -> Option<u64> {
        Some(self.stamp)
    }
}
