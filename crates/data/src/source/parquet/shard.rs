//! One parquet file: checked, with its columns found.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::ParquetOptions;
use super::blocks::{Blocks, Tap};
use super::columns::{self, Columns, Holds};
use crate::source::SourceError;
use crate::source::fingerprint::Fingerprint;
use crate::source::standin::{self, Wanted};

/// First and last bytes of every parquet file.
const MAGIC: &[u8] = b"PAR1";
/// Bytes of each row group's pictures that the fingerprint covers.
const PRINTED: usize = 4096;

/// Rows of a file, at most, beside so many for each of its bytes: rows that repeat others take next to nothing.
const ROWS: i128 = 1 << 22;
const ROWS_PER_BYTE: i128 = 4;

/// An opened file.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) path: PathBuf,
    pub(super) blocks: Arc<Blocks>,
    pub(super) metadata: ParquetMetaData,
    pub(super) columns: Columns,
    /// The footer: all that the file says of itself.
    footer: Vec<u8>,
}

impl Shard {
    /// Opens one of so many files.
    pub(super) fn open(
        path: &Path,
        of: usize,
        options: &ParquetOptions,
        earlier: Option<&Columns>,
    ) -> Result<Self, SourceError> {
        let io = |e| SourceError::io(path, e);
        // A pipe would block when opened.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(SourceError::not_usable(path, "is no plain file"));
        }
        let file = File::open(path).map_err(io)?;
        standin::refuse(path, &file, Wanted::Parquet)?;
        let blocks = Arc::new(Blocks::new(path, file, of).map_err(io)?);
        let footer = footer(path, &blocks)?;
        let metadata = metadata(&blocks).map_err(|e| {
            let found = format!("its footer cannot be read ({e}): is the file damaged?");
            SourceError::not_usable(path, found)
        })?;
        let columns = columns::find(metadata.file_metadata().schema_descr(), options, earlier)
            .map_err(|found| SourceError::Column { path: path.into(), place: "", found })?;
        let shard = Self { path: path.into(), blocks, metadata, columns, footer };
        shard.check()?;
        Ok(shard)
    }

    /// Reads the file anew, to look at a leaf column of a row group.
    pub(super) fn tap(&self, group: usize, leaf: usize) -> Arc<Tap> {
        let codec = self.metadata.row_group(group).column(leaf).compression();
        Arc::new(Tap::new(self.blocks.clone(), Some(codec)))
    }

    /// Rows of a row group.
    pub(super) fn rows(&self, group: usize) -> usize {
        usize::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    /// True if no row can name a file instead of holding its picture.
    pub(super) fn holds_all(&self) -> bool {
        let leaf = match self.columns.image {
            Holds::Bytes(_) | Holds::Struct(_, None) => return true,
            Holds::Text(_) => return false,
            Holds::Struct(leaf, Some(_)) => leaf,
        };
        let nulls =
            |group: &RowGroupMetaData| group.column(leaf).statistics().and_then(Statistics::null_count_opt);
        self.metadata.row_groups().iter().all(|group| nulls(group) == Some(0))
    }

    /// Bytes of pictures that lie compressed in the file.
    pub(super) fn packed_bytes(&self) -> u64 {
        let leaf = self.columns.image.leaf();
        let columns = self.metadata.row_groups().iter().map(|group| group.column(leaf));
        let packed = columns.filter(|column| column.compression() != Compression::UNCOMPRESSED);
        packed.map(|column| u64::try_from(column.uncompressed_size()).unwrap_or(0)).sum()
    }

    /// Adds what decides the file's rows, as far as it is cheap to know.
    pub(super) fn print(&self, fingerprint: &mut Fingerprint) -> Result<(), SourceError> {
        fingerprint.field(&self.footer);
        for group in self.metadata.row_groups() {
            let (start, len) = group.column(self.columns.image.leaf()).byte_range();
            let len = usize::try_from(len).unwrap_or(PRINTED).min(PRINTED);
            let bytes = self.blocks.read(start, len).map_err(|e| match e.kind() {
                ErrorKind::UnexpectedEof => {
                    let found = format!("a row group does not lie in the file ({e}): is the file damaged?");
                    SourceError::not_usable(&self.path, found)
                }
                _ => SourceError::io(&self.path, e),
            })?;
            fingerprint.field(&bytes);
        }
        Ok(())
    }

    /// Refuses row groups that cannot be.
    fn check(&self) -> Result<(), SourceError> {
        let total = self.metadata.row_groups().iter().map(|group| group.num_rows() as i128).sum::<i128>();
        // Captions are read before anything is made as large as this; there it turns out whether it is true.
        if total > i128::from(self.blocks.len()) * ROWS_PER_BYTE + ROWS {
            let found = format!("claims {total} rows in {} bytes: is the file damaged?", self.blocks.len());
            return Err(SourceError::not_usable(&self.path, found));
        }
        let leaves = self.metadata.file_metadata().schema_descr().num_columns();
        for (i, group) in self.metadata.row_groups().iter().enumerate() {
            if group.num_rows() < 0 || group.num_rows() > i64::from(u32::MAX) || group.num_columns() != leaves
            {
                let found = format!(
                    "row group {i} has {} rows and {} columns, and there are {leaves} columns: is the file damaged?",
                    group.num_rows(),
                    group.num_columns()
                );
                return Err(SourceError::not_usable(&self.path, found));
            }
        }
        Ok(())
    }
}

/// The footer's bytes, if the file has a whole one.
fn footer(path: &Path, blocks: &Blocks) -> Result<Vec<u8>, SourceError> {
    let cut = |what: &str| {
        let found = format!("is cut or damaged: {what} ({} bytes). Copy or download it again", blocks.len());
        Err(SourceError::not_usable(path, found))
    };
    let io = |e| SourceError::io(path, e);
    let Some(end) = blocks.len().checked_sub(12) else { return cut("it is too short") };
    let tail = blocks.read(end + 4, 8).map_err(io)?;
    let (length, magic) = tail.split_at(4);
    if magic != MAGIC {
        return cut("`PAR1` is missing at its end");
    }
    let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
    match (end + 4).checked_sub(length) {
        Some(start) => blocks.read(start, length as usize).map_err(io),
        None => cut("its footer would be longer than the file"),
    }
}

/// The metadata, with the places of pages if the file knows them.
fn metadata(blocks: &Arc<Blocks>) -> Result<ParquetMetaData, ParquetError> {
    let tap = Tap::new(blocks.clone(), None);
    let read = |policy| ParquetMetaDataReader::new().with_offset_index_policy(policy).parse_and_finish(&tap);
    // A damaged index of pages costs speed, not the file.
    read(PageIndexPolicy::Optional).or_else(|_| read(PageIndexPolicy::Skip))
}
