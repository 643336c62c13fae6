//! WebDataset: tar archives in which the files of one key are a sample. The key of `shards/a/0001.seg.png` is what stands
//! before the first dot of the file's name, with its folder; a sample's files follow each other.
//!
//! Archives are not unpacked. When the set is opened their headers and captions are read, and pictures are passed over
//! with a seek; of a picture it is kept where it lies, and reading a row is one read of the disk.

mod index;
mod members;
mod text;

use std::path::{Path, PathBuf};

use super::fingerprint::Fingerprint;
use super::groups::Groups;
use super::parquet::files::{self, Wanted};
use super::picture::{MAX_FILE_BYTES, Picture, reject};
use super::splits::SplitNames;
use super::{BadSample, Blocks, Sample, Source, SourceError};
use crate::image::{DecodeOptions, Reject};
use crate::text::{count, printable};
use index::{Index, Lies};

/// Rows that are worth reading one after another.
const BLOCK: usize = 256;
/// Bytes of a block's first picture that the fingerprint covers.
const PRINTED: usize = 4096;

/// How archives are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TarOptions {
    /// The field of a sample's `.json` that holds the caption; `None`, or the published presets' name: its `.txt` or
    /// `.caption`, or in a `.json` the usual fields (`caption`, `text` and the like).
    pub caption_col: Option<String>,
    /// How pictures are decoded.
    pub decode: DecodeOptions,
}

/// The splits that were asked for.
#[derive(Debug)]
pub struct TarSplits {
    /// To train on.
    pub train: Tar,
    /// To validate on, if there is a split for that.
    pub validation: Option<Tar>,
    /// Which splits were taken.
    pub notes: Vec<String>,
    /// What was left out or is missing, a line each.
    pub warnings: Vec<String>,
}

/// One split: the samples of its archives, in the order of the archives' names and of the files in them.
#[derive(Debug)]
pub struct Tar {
    index: Index,
    decode: DecodeOptions,
    blocks: Blocks,
    describe: String,
    fingerprint: u64,
    archives: Vec<PathBuf>,
}

impl Tar {
    /// Opens `path`: an archive, a folder of them, a pattern with `*`, or shards as `{00000..00012}`.
    ///
    /// # Errors
    /// If there is no archive, or one is cut, compressed or none, or no sample has a caption. A sample without its
    /// picture is a [`BadSample`].
    pub fn open(path: &Path, names: &SplitNames, options: &TarOptions) -> Result<TarSplits, SourceError> {
        let found = files::find(path, names, &Wanted { ending: "tar", none })?;
        let validation = found.validation.as_ref().map(|v| Self::open_split(v, options)).transpose()?;
        let train = Self::open_split(&found.train, options)?;
        let mut warnings = found.warnings;
        warnings.extend(train.index.warnings.iter().cloned());
        Ok(TarSplits { train, validation, notes: found.notes, warnings })
    }

    fn open_split(files: &files::Split, options: &TarOptions) -> Result<Self, SourceError> {
        // The reader is other people's code fed with hostile bytes.
        crate::batch::caught(|| Self::read_split(files, options)).unwrap_or_else(|panic| {
            Err(SourceError::not_usable(&files.shown, format!("cannot be read as tar: {panic}")))
        })
    }

    fn read_split(files: &files::Split, options: &TarOptions) -> Result<Self, SourceError> {
        let given = options.caption_col.as_deref();
        let index = Index::read(&files.paths, given)?;
        let shown = &files.shown;
        if index.captions.rows() == 0 {
            return Err(SourceError::not_usable(
                shown,
                "has no sample: a picture (.jpg, .png, .webp, .gif) and a caption (.txt, .caption, .json) of one name are wanted",
            ));
        }
        if index.captions.none_usable() {
            let rows = count(index.captions.rows(), "sample");
            return Err(SourceError::not_usable(shown, format!("has no caption in {rows}: {}", index.why())));
        }
        let blocks = index.blocks(BLOCK);
        let archives =
            if files.paths.len() == 1 { String::new() } else { format!("{} files, ", files.paths.len()) };
        let samples = count(index.samples(), "sample");
        let describe = format!("webdataset {} ({archives}{samples})", shown.display());
        let fingerprint = index.print(&blocks, PRINTED);
        let archives = files.paths.clone();
        Ok(Self { index, decode: options.decode.clone(), blocks, describe, fingerprint, archives })
    }

    fn picture(&self, row: usize) -> Result<Picture<'static>, Reject> {
        let (archive, offset, len) = match self.index.picture(row) {
            None => return Err(reject("read_error", format!("the source has {}", count(self.len(), "row")))),
            Some(Lies::Nowhere) => {
                return Err(reject("missing_file", "the sample has a caption and no picture"));
            }
            Some(Lies::At { archive, offset, len }) => (archive, offset, len),
        };
        if u64::from(len) > MAX_FILE_BYTES {
            let detail = format!("the picture has {len} bytes, the limit is {MAX_FILE_BYTES}");
            return Err(reject("too_many_bytes", detail));
        }
        crate::memory::room(u64::from(len)).map_err(|lack| Reject::from(lack).of_bytes(len as usize))?;
        let bytes = self.index.bytes(archive, offset, len as usize);
        bytes.map(|bytes| Picture::Bytes(bytes.into())).map_err(|e| reject("read_error", e.to_string()))
    }

    fn bad(&self, row: usize, reason: &'static str, detail: String) -> BadSample {
        let (file, key) = self.index.place(row);
        let file = file.map_or_else(|| self.describe.clone(), |path: &PathBuf| path.display().to_string());
        let place = format!("{file}: sample `{}` (row {row})", printable(key.as_bytes(), 200));
        BadSample { reason, detail, place, file, bytes: None }
    }
}

/// Why a folder has no archive.
fn none(path: &Path) -> String {
    let mut names =
        std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|e| e.file_name());
    let packed = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy().to_lowercase();
        name.ends_with(".tgz") || name.contains(".tar.")
    };
    match names.find(packed) {
        Some(name) => format!(
            "has no .tar file, but {}, which is compressed: unpack it (`gunzip {0}`), pictures hardly shrink anyway",
            name.to_string_lossy()
        ),
        None => "has no .tar file".into(),
    }
}

impl Source for Tar {
    fn len(&self) -> usize {
        self.index.captions.rows()
    }

    fn caption_chars(&self, row: usize) -> usize {
        self.index.captions.chars(row)
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        let caption = self.index.captions.get(row).map(str::to_owned);
        caption.map_err(|(reason, detail)| self.bad(row, reason, detail))
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let caption = self.caption(row)?;
        let read = self.picture(row).and_then(|picture| picture.sample(caption, size, &self.decode, pixels));
        read.map_err(|reject| self.bad(row, reject.reason, reject.detail.clone()).seen(&reject))
    }

    fn groups(&self) -> Option<&Groups> {
        self.index.captions.groups()
    }

    fn unknown_repeats(&self) -> Option<String> {
        Some("pictures that stand in the archives more than once".into())
    }

    fn blocks(&self) -> Option<&Blocks> {
        Some(&self.blocks)
    }

    fn bytes(&self) -> u64 {
        self.index.archive_bytes()
    }

    fn describe(&self) -> String {
        self.describe.clone()
    }

    /// Covers the captions, the keys, of each picture where it lies, and the first bytes of one picture of each block; not
    /// every byte of every picture.
    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Covers length and time of the last change of each archive.
    fn stamp(&self) -> Option<u64> {
        let mut stamp = Fingerprint::new("files");
        self.archives.iter().for_each(|path| stamp.file(std::fs::metadata(path).ok().as_ref()));
        Some(stamp.value())
    }
}
