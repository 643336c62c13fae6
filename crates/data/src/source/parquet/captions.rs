//! The captions of a file, read when it is opened.

use super::leaf::{self, Part};
use super::shard::Shard;
use crate::source::SourceError;
use crate::source::groups::Captions;
use crate::text::printable_bytes;

/// So many bytes of captions a file may have, whatever its length.
const SMALL: u64 = 64 << 20;
/// And so many times its length: a dictionary may repeat one text a million times in a few bytes.
const GROWTH: u64 = 16;
/// What a caption takes beside its text.
const EACH: u64 = 24;

/// Adds the captions of all rows of `shard`.
pub(super) fn read(shard: &Shard, captions: &mut Captions) -> Result<(), SourceError> {
    let file = shard.blocks.len();
    let (mut done, mut taken, limit) = (0, 0, SMALL.max(file.saturating_mul(GROWTH)));
    for group in 0..shard.metadata.num_row_groups() {
        let rows = shard.rows(group);
        let part = Part { group, leaf: shard.columns.caption, first: 0, rows };
        let (mut at, mut texts) = (0, Vec::<String>::new());
        let read = leaf::values(&shard.tap(group, part.leaf), &shard.metadata, part, |row, bytes| {
            let text = std::str::from_utf8(bytes).map_err(|e| {
                let (shown, picture) = (
                    printable_bytes(bytes[e.valid_up_to()..].get(..8).unwrap_or(&bytes[e.valid_up_to()..])),
                    done + row,
                );
                format!("picture {picture} of the file (from 0): not UTF-8: `{shown}`")
            })?;
            while at < row {
                taken += if texts.is_empty() { EACH } else { 0 };
                captions.push(texts.drain(..));
                at += 1;
            }
            taken += text.len() as u64 + EACH;
            if taken > limit {
                return Err(format!(
                    "more than {limit} bytes of captions in a file of {file}: is it damaged?"
                ));
            }
            texts.push(text.to_owned());
            Ok(())
        });
        read.map_err(|found| {
            let found = format!("column `{}`, row group {group}: {found}", shard.columns.caption_name);
            SourceError::not_usable(&shard.path, found)
        })?;
        while at < rows {
            captions.push(texts.drain(..));
            at += 1;
        }
        done += rows;
    }
    Ok(())
}
