//! The pictures of a batch that are to be captioned, and what became of each row.

use crate::caption::Caption;
use ocelli_data::batch::Dataset;
use ocelli_data::loader::Loaded;
use ocelli_data::source::BadSample;
use ocelli_data::split::Rows;
use std::collections::HashSet;

/// A picture's caption beside its references.
#[derive(Clone, Debug, PartialEq)]
pub struct Captioned {
    /// What the model says.
    pub caption: Caption,
    /// What stands in the data, all captions of the picture.
    pub references: Vec<String>,
}

/// What became of a row. Of rows that share a picture, the first that can be used stands for all.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Which row of the data set.
    pub row: usize,
    /// The number by which people know the row, from 0.
    pub number: usize,
    /// The caption, or why there is none.
    pub outcome: Result<Captioned, BadSample>,
}

/// A picture to caption.
pub(super) struct Picture<'a> {
    /// Which row of the batch.
    slot: usize,
    /// Its row in the source.
    row: usize,
    /// `[S, S, 3]`.
    pub pixels: &'a [u8],
}

/// The usable pictures of a batch that are not among those `captioned` before, to which they are added.
pub(super) fn pictures<'a>(
    dataset: &Dataset,
    rows: &Rows,
    loaded: &'a Loaded,
    captioned: &mut HashSet<usize>,
) -> Vec<Picture<'a>> {
    let batch = &loaded.batch;
    let start = loaded.position.batch as usize * batch.rows;
    let mut found = Vec::new();
    for (slot, pixels) in batch.images.chunks_exact(batch.size * batch.size * 3).enumerate() {
        let Some(row) = rows.get(start + slot).map(|row| dataset.source_row(row, 0)) else { break };
        let bad = batch.skipped.iter().any(|s| s.slot == slot);
        if !bad && captioned.insert(dataset.source().picture_of(row)) {
            found.push(Picture { slot, row, pixels });
        }
    }
    found
}

/// What became of the rows of a batch, in order.
pub(super) fn judge(
    dataset: &Dataset,
    seen: Vec<Picture<'_>>,
    captions: Vec<Caption>,
    loaded: &Loaded,
) -> Vec<Judged> {
    let good = seen.into_iter().zip(captions).map(|(Picture { slot, row, .. }, caption)| {
        let references = dataset.source().captions_of(row);
        (slot, Judged { row, number: dataset.number(row), outcome: Ok(Captioned { caption, references }) })
    });
    let bad = loaded
        .batch
        .skipped
        .iter()
        .map(|s| (s.slot, Judged { row: s.row, number: s.number, outcome: Err(s.why.clone()) }));
    let mut all: Vec<(usize, Judged)> = good.chain(bad).collect();
    all.sort_by_key(|(slot, _)| *slot);
    all.into_iter().map(|(_, judged)| judged).collect()
}
