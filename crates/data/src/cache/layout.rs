//! How a cache file is laid out: a page that says what it is, the pictures at fixed places, the records of rows one behind the
//! other, an index of them.
//!
//! All numbers are little-endian. Page: magic, `pictures`, `rows`, `size`, `records` (where they start), `index` (where it
//! starts), length of the key, the key, zeros, and in the last four bytes a CRC-32 of all before. Index: for each row the
//! place of its record, its length, its CRC-32: 8, 4 and 4 bytes.

use std::fs::File;
use std::io;

use crate::source::{read_exact_at, write_all_at};

const MAGIC: &[u8; 16] = b"ocelli pixels 1\n";
pub(super) const PAGE: usize = 4096;
/// Bytes of an entry of the index.
pub(super) const ENTRY: usize = 16;
/// Where the key starts.
const KEY: usize = 16 + 6 * 8;

/// What the first page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) pictures: u64,
    pub(super) rows: u64,
    /// Side of the pictures, in pixels.
    pub(super) size: u64,
    pub(super) records: u64,
    pub(super) index: u64,
    pub(super) key: String,
}

/// Bytes of a file, roughly: captions are not counted exactly.
pub(super) fn bytes(pictures: usize, rows: usize, size: usize) -> u64 {
    PAGE as u64 + pictures as u64 * picture_bytes(size) + rows as u64 * (ENTRY as u64 + 128)
}

pub(super) fn picture_bytes(size: usize) -> u64 {
    (size as u64).saturating_mul(size as u64).saturating_mul(3)
}

impl Header {
    /// Where picture `number` starts.
    pub(super) fn picture(&self, number: u64) -> u64 {
        PAGE as u64 + number * picture_bytes(self.size as usize)
    }

    /// Length of the whole file.
    pub(super) fn end(&self) -> Option<u64> {
        self.index.checked_add(self.rows.checked_mul(ENTRY as u64)?)
    }

    /// Writes the first page.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let mut page = vec![0; PAGE];
        page[..16].copy_from_slice(MAGIC);
        let key = self.key.as_bytes();
        // A longer one is cut: what is compared is the cut one.
        let key = &key[..key.len().min(PAGE - KEY - 4)];
        let numbers = [self.pictures, self.rows, self.size, self.records, self.index, key.len() as u64];
        for (to, number) in page[16..KEY].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        page[KEY..][..key.len()].copy_from_slice(key);
        let check = crc32fast::hash(&page[..PAGE - 4]);
        page[PAGE - 4..].copy_from_slice(&check.to_le_bytes());
        write_all_at(file, &page, 0)
    }

    /// Reads the first page: `None` if it is none of a cache; `Some(None)` if it is damaged.
    pub(super) fn read(file: &File) -> io::Result<Option<Option<Self>>> {
        let mut page = vec![0; PAGE];
        match read_exact_at(file, &mut page[..16], 0) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        if page[..16] != *MAGIC {
            return Ok(None);
        }
        if read_exact_at(file, &mut page, 0).is_err() {
            return Ok(Some(None));
        }
        let number = |at: usize| page[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let check = page[PAGE - 4..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let [pictures, rows, size, records, index, len] = std::array::from_fn(|i| number(16 + 8 * i));
        let key = usize::try_from(len).ok().and_then(|len| page[KEY..PAGE - 4].get(..len));
        let key = key.and_then(|key| std::str::from_utf8(key).ok()).map(str::to_owned);
        let whole = check == crc32fast::hash(&page[..PAGE - 4]);
        Ok(Some(key.filter(|_| whole).map(|key| Self { pictures, rows, size, records, index, key })))
    }

    /// The key as it is compared.
    pub(super) fn cut(key: &str) -> String {
        let most = PAGE - KEY - 4;
        let mut end = key.len().min(most);
        while !key.is_char_boundary(end) {
            end -= 1;
        }
        key[..end].into()
    }
}
