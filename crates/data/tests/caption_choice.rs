//! Several captions of a picture: which one is drawn, and which pictures validate.

mod loader_common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loader_common::{Memory, SIZE, options};
use ocelli_data::batch::{Dataset, Lengths, LossMode, Padding};
use ocelli_data::loader::{Loaded, Loader};
use ocelli_data::sampler::{Position, Sampler, SamplerOptions};
use ocelli_data::scan::ContentStats;
use ocelli_data::source::{BadSample, Groups, Sample, Source, first_captions};
use ocelli_data::split::{Rows, split_pictures};
use ocelli_data::tokenizer::{CharTokenizer, UnknownPolicy};

/// A source whose rows share pictures.
struct Grouped(Memory, Groups);

impl Source for Grouped {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn caption_chars(&self, row: usize) -> usize {
        self.0.caption_chars(row)
    }
    fn caption(&self, row: usize) -> Result<String, BadSample> {
        self.0.caption(row)
    }
    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let sample = self.0.read(row, size, pixels)?;
        pixels.copy_from_slice(&loader_common::pixels(self.1.picture_of(row)));
        Ok(sample)
    }
    fn groups(&self) -> Option<&Groups> {
        Some(&self.1)
    }
    fn describe(&self) -> String {
        "grouped".into()
    }
    fn fingerprint(&self) -> u64 {
        0
    }
}

/// 40 pictures with 1 to 4 captions of 1 to 30 characters.
fn grouped() -> Arc<Grouped> {
    let groups = Groups::of_sizes((0..40).map(|i| 1 + i % 4));
    Arc::new(Grouped(Memory::numbered(groups.rows()), groups))
}

fn dataset(source: Arc<dyn Source>, random: bool) -> Arc<Dataset> {
    let lengths = Lengths::plan(Padding::Longest, None, &ContentStats::scan(&*source)).unwrap();
    let tokenizer =
        CharTokenizer::learn("abcdefghijklmnopqrstuvwxyz ".chars(), true, UnknownPolicy::Error).unwrap();
    let set = Dataset::new(source, Arc::new(tokenizer), SIZE, LossMode::Masked, lengths).unwrap();
    Arc::new(if random { set.with_random_captions(1337) } else { set })
}

/// The batches of three epochs.
fn drawn(set: &Arc<Dataset>, batch: usize, rank: usize, world: usize, workers: usize) -> Vec<Loaded> {
    let o = SamplerOptions { seed: 1, shuffle: true, endless: false, batch_per_rank: batch, rank, world };
    let sampler = Sampler::new(Rows::all(set.len()), o).unwrap();
    let mut loader =
        Loader::start(set.clone(), sampler, Position::default(), options(workers, Some(3))).unwrap();
    let mut all = Vec::new();
    for _ in 0..3 {
        while let Some(loaded) = loader.next_batch() {
            all.push(loaded.unwrap());
        }
    }
    all
}

/// Picture and tokens of each row, epoch by epoch.
fn pairs(batches: &[Loaded]) -> Vec<BTreeMap<Vec<u8>, Vec<u32>>> {
    let mut epochs = vec![BTreeMap::new(); 3];
    for Loaded { batch, position, .. } in batches {
        let (pixels, t) = (SIZE * SIZE * 3, batch.text_len);
        for row in 0..batch.real_rows {
            let picture = batch.images[row * pixels..][..pixels].to_vec();
            let weights = &batch.weights[row * (t + 1)..][..t + 1];
            let count = weights.iter().filter(|w| **w > 0.0).count();
            let tokens = batch.tokens[row * t..][..(count - 1).min(t)].to_vec();
            assert!(
                epochs[position.epoch as usize].insert(picture, tokens).is_none(),
                "a picture came twice"
            );
        }
    }
    epochs
}

#[test]
fn a_random_caption_depends_on_seed_epoch_and_picture_alone() {
    let set = dataset(grouped(), true);
    assert_eq!((set.len(), set.source().len()), (40, 100));
    let one = drawn(&set, 8, 0, 1, 0);
    assert!(one.iter().all(|l| l.batch.skipped.is_empty()), "a length was not known before");
    let epochs = pairs(&one);
    assert!(epochs.iter().all(|epoch| epoch.len() == 40));
    let changed = epochs[0].iter().filter(|(picture, tokens)| epochs[1][*picture] != **tokens).count();
    assert!((10..30).contains(&changed), "{changed} of 30 pictures with several captions changed theirs");
    // Workers, and the size of batches, change nothing.
    assert_eq!(one, drawn(&set, 8, 0, 1, 3));
    assert_eq!(epochs, pairs(&drawn(&set, 5, 0, 1, 2)));
    // Two ranks see the same lengths and, together, the same pairs.
    let (a, b) = (drawn(&set, 4, 0, 2, 1), drawn(&set, 4, 1, 2, 1));
    assert!(a.iter().zip(&b).all(|(a, b)| a.batch.text_len == b.batch.text_len));
    assert_eq!(epochs, pairs(&[a, b].concat()));
    // In many passes every caption comes.
    let seen: BTreeSet<usize> = (0..60)
        .flat_map(|pass| (0..40).map(move |row| (row, pass)))
        .map(|(r, p)| set.source_row(r, p))
        .collect();
    assert_eq!(seen.len(), 100);
}

#[test]
fn the_first_caption_is_a_row_for_each_picture() {
    let source = grouped();
    let first = first_captions(source.clone());
    assert_eq!((first.len(), first.groups()), (40, None));
    // All captions of a picture stay known.
    let all = |picture: usize| {
        grouped().1.rows_of(picture).map(|row| grouped().caption(row).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!([0, 3, 39].map(|picture| first.captions_of(picture)), [0, 3, 39].map(all));
    assert_eq!(grouped().captions_of(grouped().1.rows_of(3).start + 2), all(3));
    assert!(first.captions_of(40).is_empty());
    for picture in 0..40 {
        let row = source.1.rows_of(picture).start;
        assert_eq!(first.caption(picture), source.caption(row));
        assert_eq!(first.caption_chars(picture), source.caption_chars(row));
        assert_eq!(first.pictured(picture, SIZE), source.pictured(row, SIZE));
    }
    assert!(first.notes()[0].contains("100 captions of 40 pictures"), "{:?}", first.notes());
    // A source with one caption a picture stays what it is.
    assert_eq!(first_captions(Arc::new(Memory::numbered(3))).notes().len(), 0);
}

#[test]
fn with_all_captions_no_picture_is_on_both_sides() {
    let source = grouped();
    let parts = split_pictures(&source.1, 0.75, 3).unwrap();
    let set = dataset(source, false);
    let pictures = |rows: &Rows| -> BTreeSet<Vec<u8>> {
        rows.iter().map(|row| set.source().pictured(row, SIZE).unwrap().pixels).collect()
    };
    let (train, validation) = (pictures(&parts.train), pictures(&parts.validation));
    assert_eq!((train.len(), validation.len()), (30, 10));
    assert!(train.is_disjoint(&validation));
    assert_eq!(parts.train.len() + parts.validation.len(), 100);
}
