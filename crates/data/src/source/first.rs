//! A source seen through the first caption of each picture (`data_config.caption_choice=first`).

use std::sync::Arc;

use super::{BadSample, Blocks, Groups, Repeats, Sample, Source};

/// One row for each picture of a source, which of these show the same, and which lie together.
struct First(Arc<dyn Source>, Option<Repeats>, Option<Blocks>);

/// `source` with the first caption of each picture alone; itself, if no picture has several.
pub fn first_captions(source: Arc<dyn Source>) -> Arc<dyn Source> {
    if source.groups().is_none() {
        return source;
    }
    let blocks = source.blocks().zip(source.groups()).map(|(blocks, groups)| blocks.of_pictures(groups));
    let all = First(source, None, None);
    let repeats = all.0.repeats().and_then(|repeats| {
        Repeats::new((0..all.len()).filter_map(|row| repeats.of_row().get(all.row(row)).copied()))
    });
    Arc::new(First(all.0, repeats, blocks))
}

impl First {
    /// The source's row; one that does not exist, which the source refuses, for a picture that does not exist.
    fn row(&self, picture: usize) -> usize {
        let rows = self.0.groups().map(|groups| groups.rows_of(picture));
        rows.filter(|rows| !rows.is_empty()).map_or(self.0.len(), |rows| rows.start)
    }
}

impl Source for First {
    fn len(&self) -> usize {
        self.0.groups().map_or(0, Groups::pictures)
    }

    fn caption_chars(&self, row: usize) -> usize {
        self.0.caption_chars(self.row(row))
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        self.0.caption(self.row(row))
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        self.0.read(self.row(row), size, pixels)
    }

    fn captions_of(&self, row: usize) -> Vec<String> {
        self.0.captions_of(self.row(row))
    }

    fn repeats(&self) -> Option<&Repeats> {
        self.1.as_ref()
    }

    fn unknown_repeats(&self) -> Option<String> {
        self.0.unknown_repeats()
    }

    fn blocks(&self) -> Option<&Blocks> {
        self.2.as_ref()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn number(&self, row: usize) -> usize {
        self.0.number(self.row(row))
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn notes(&self) -> Vec<String> {
        let (rows, pictures) = (self.0.len(), self.len());
        let line = format!(
            "{rows} captions of {pictures} pictures: the loss uses the first of each (data_config.caption_choice=random \
             or all: all of them)"
        );
        [self.0.notes(), vec![line]].concat()
    }

    fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }

    fn stamp(&self) -> Option<u64> {
        self.0.stamp()
    }
}
