//! A page as the parquet reader unpacked it, looked at once more before its values are read: numbers of values, for each of
//! which memory is taken beforehand, must be possible.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::Length;
use parquet::schema::types::ColumnDescPtr;

use super::blocks::Tap;

/// Values in a dictionary, or in a list of differences, at most. Writers end them after some ten thousand.
const MOST: u64 = 1 << 21;
/// Values in a column of a row group, nulls included, beside so many for each of its bytes: a null in a list takes next to
/// nothing in the file, and all of one row are held together.
const COLUMN: u64 = 1 << 22;
const PER_BYTE: u64 = 16;

/// Pages of a column of bytes.
pub(super) struct Guard<P> {
    pages: P,
    /// What the pages are read through.
    tap: Arc<Tap>,
    column: ColumnDescPtr,
    /// Values seen, and the most that may be.
    values: (u64, u64),
}

impl<P: PageReader> Guard<P> {
    /// Pages of a part of the file that `tap` reads.
    pub(super) fn new(pages: P, chunk: &ColumnChunkMetaData, tap: &Arc<Tap>) -> Self {
        let (file, tap) = (tap.len(), tap.clone());
        let bytes = u64::try_from(chunk.compressed_size()).unwrap_or(file).min(file);
        let most = COLUMN.saturating_add(bytes.saturating_mul(PER_BYTE));
        Self { pages, tap, column: chunk.column_descr_ptr(), values: (0, most) }
    }

    fn checked(&mut self, page: Option<Page>) -> Result<Option<Page>> {
        if let Some(page) = &page {
            if page.is_data_page() {
                self.values.0 += u64::from(page.num_values());
                few("a column", self.values.0, self.values.1)?;
            }
            match page {
                // Each value has a length of 4 bytes before it.
                Page::DictionaryPage { buf, num_values, .. } => {
                    few("a dictionary", u64::from(*num_values), MOST.min(buf.len() as u64 / 4))?;
                    self.tap.note_dictionary(buf);
                }
                Page::DataPage { buf, encoding, .. } => {
                    self.delta(*encoding, || self.values_v1(buf))?;
                }
                Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                    let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                    self.delta(*encoding, || buf.get(usize::try_from(levels).ok()?..))?;
                }
            }
        }
        Ok(page)
    }

    /// Checks the numbers that encodings by differences begin with. What is cut the reader refuses by itself.
    fn delta<'a>(&self, encoding: Encoding, values: impl Fn() -> Option<&'a [u8]>) -> Result<()> {
        let lists = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(()),
        };
        let mut rest = values().unwrap_or_default();
        for _ in 0..lists {
            let Some((count, tail)) = differences(rest) else { return Ok(()) };
            few("a page", count, MOST)?;
            rest = tail.unwrap_or_default();
        }
        Ok(())
    }

    /// The values behind the levels of a page of the first version.
    fn values_v1<'a>(&self, buf: &'a Bytes) -> Option<&'a [u8]> {
        let mut rest = &buf[..];
        for level in [self.column.max_rep_level(), self.column.max_def_level()] {
            if level > 0 {
                let (length, tail) = rest.split_first_chunk::<4>()?;
                rest = tail.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)?;
            }
        }
        Some(rest)
    }
}

fn few(what: &str, values: u64, most: u64) -> Result<()> {
    if values <= most {
        return Ok(());
    }
    let found = format!("{what} claims {values} values, and can have {most}: is the file damaged?");
    Err(ParquetError::General(found))
}

/// How many numbers a list of differences has, and what follows it; `None` if it is cut at once.
fn differences(mut bytes: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    let (block, parts, count) = (number(&mut bytes)?, number(&mut bytes)?, number(&mut bytes)?);
    Some((count, if count <= MOST { behind(bytes, block, parts, count) } else { None }))
}

/// What follows a list of `count` differences in blocks of `block`, each in so many parts.
fn behind(mut bytes: &[u8], block: u64, parts: u64, count: u64) -> Option<&[u8]> {
    number(&mut bytes)?;
    let per_part = block.checked_div(parts).filter(|n| *n > 0)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        number(&mut bytes)?;
        let (widths, tail) = bytes.split_at_checked(usize::try_from(parts).ok()?)?;
        bytes = tail;
        for width in widths {
            if left == 0 {
                break;
            }
            let length = u64::from(*width).checked_mul(per_part)?.div_ceil(8);
            bytes = bytes.get(usize::try_from(length).ok()?..)?;
            left = left.saturating_sub(per_part);
        }
    }
    Some(bytes)
}

/// A number, 7 bits a byte.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, tail) = bytes.split_first()?;
        *bytes = tail;
        number |= u64::from(byte & 0x7f) << shift.min(63);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

impl<P: PageReader> Iterator for Guard<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Guard<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.checked(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.pages.take_deferred_dictionary()?;
        self.checked(page)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_differences_are_walked_through() {
        // Blocks of 128 in 4 parts: 35 numbers are the first, 32 of 3 bits each, and 2 of 1 bit each; then 9.
        let mut bytes = vec![0x80, 1, 4, 35, 0, 6, 3, 1, 0, 0];
        bytes.extend([0; 32 * 3 / 8 + 32 / 8]);
        bytes.push(9);
        assert_eq!(differences(&bytes), Some((35, Some(&[9][..]))));
        for end in 0..4 {
            assert_eq!(differences(&bytes[..end]), None, "{end}");
        }
        assert_eq!(differences(&bytes[..bytes.len() - 2]), Some((35, None)));
        assert_eq!(differences(&[0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Some(((1 << 36) - 1, None)));
        assert_eq!(differences(&[0, 0, 9, 0, 0]), Some((9, None)));
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert!(few("a page", 7, 7).is_ok());
        assert!(few("a page", 8, 7).unwrap_err().to_string().contains("claims 8 values"));
    }
}
