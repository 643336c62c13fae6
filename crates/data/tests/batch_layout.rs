//! What is in a batch, by arrays written by hand.
mod loader_common;

use loader_common::{Memory, SIZE, Setup, only_batch, pixels};
use ocelli_data::batch::{Batch, Flaw, LossMode, Padding};
use ocelli_data::image::Warnings;
use ocelli_data::tokenizer::UnknownPolicy;

/// Ids: a 0, b 1, c 2, pad 3, end 4 (masked only).
const ABC: Setup = Setup {
    mode: LossMode::Masked,
    padding: Padding::MaxLength,
    max: Some(4),
    unknown: UnknownPolicy::Error,
    vocabulary: "abc",
};
const P: u32 = 3;
const E: u32 = 4;
const FINE: Warnings = Warnings { no_end_marker: false, animated: false, incomplete: false };
const ANIMATED: Warnings = Warnings { animated: true, ..FINE };
/// The third row of both losses' tests.
const CUT: Flaw = Flaw { slot: 2, row: 2, cut: true, replaced: 0, warnings: FINE };

#[test]
fn masked() {
    let b = only_batch(Memory::of(&["abc", "c", "cbabca"]), ABC, 4);
    assert_eq!((b.rows, b.text_len, b.size), (4, 4, SIZE));
    #[rustfmt::skip]
    assert_eq!(b.tokens, [
        0, 1, 2, P,
        2, P, P, P,
        2, 1, 0, 1,
        P, P, P, P,
    ]);
    #[rustfmt::skip]
    assert_eq!(b.targets, [
        0, 1, 2, E, P,
        2, E, P, P, P,
        2, 1, 0, 1, P,
        P, P, P, P, P,
    ]);
    #[rustfmt::skip]
    assert_eq!(b.weights, [
        1., 1., 1., 1., 0.,
        1., 1., 0., 0., 0.,
        1., 1., 1., 1., 0.,
        0., 0., 0., 0., 0.,
    ]);
    assert_eq!((b.tokens_weight, b.real_rows, b.flaws), (10.0, 3, vec![CUT]));
    assert_eq!(b.sample_index, [0, 1, 2, 3]);
    let images = [pixels(0), pixels(1), pixels(2), vec![0; SIZE * SIZE * 3]].concat();
    assert_eq!(*b.images, images[..]);
}

#[test]
fn published() {
    let b = only_batch(Memory::of(&["abc", "c", "cbabca"]), Setup { mode: LossMode::Published, ..ABC }, 4);
    #[rustfmt::skip]
    assert_eq!(b.targets, [
        P, 1, 2, P, P,
        P, P, P, P, P,
        P, 1, 0, 1, P,
        P, P, P, P, P,
    ]);
    #[rustfmt::skip]
    assert_eq!(b.weights, [
        0., 1., 1., 1., 1.,
        0., 1., 1., 1., 1.,
        0., 1., 1., 1., 0.,
        0., 0., 0., 0., 0.,
    ]);
    assert_eq!((b.tokens_weight, b.real_rows, b.flaws), (11.0, 3, vec![CUT]));
}

/// Half of the captions are short, so there is a bucket of 7; the batch's longest caption has 3 characters:
/// padding counts to 3, rounding adds 4 places that do not count.
#[test]
fn published_rounded_up_to_a_bucket() {
    let source = Memory::of(&["abc", "c", "abcabcabcabc"]);
    let setup = Setup { mode: LossMode::Published, padding: Padding::Longest, max: None, ..ABC };
    let s = ocelli_data::sampler::Sampler::in_order(ocelli_data::split::Rows::all(2), 2).unwrap();
    let d = loader_common::dataset(source.into(), setup);
    assert_eq!(d.lengths().buckets(), [7, 12]);
    let b = &loader_common::all(&d, &s, Default::default(), 0, 1)[0].batch;
    assert_eq!(b.text_len, 7);
    assert_eq!(b.weights, [[0., 1., 1., 1., 0., 0., 0., 0.], [0., 1., 1., 1., 0., 0., 0., 0.]].concat());
}

#[test]
fn bad_rows_keep_their_place_and_count_for_nothing() {
    let mut source = Memory::of(&["abc", "ab", "a?", "b", "cc", "c"]);
    source.bad.insert(0);
    source.panics.insert(3);
    let b = only_batch(source, ABC, 6);
    let reasons: Vec<_> = b.skipped.iter().map(|s| (s.slot, s.row, s.why.reason)).collect();
    assert_eq!(reasons, [(0, 0, "truncated"), (2, 2, "unknown_character"), (3, 3, "decoder_panic")]);
    assert_eq!(b.skipped[2].why.to_string(), "memory, row 3: decoder_panic: the decoder fell over row 3");
    assert_eq!((b.real_rows, b.tokens_weight), (3, 8.0));
    let image = SIZE * SIZE * 3;
    for slot in [0, 2, 3] {
        assert!(b.images[slot * image..][..image].iter().all(|&p| p == 0));
        assert!(b.tokens[slot * 4..][..4].iter().chain(&b.targets[slot * 5..][..5]).all(|&t| t == P));
        assert!(b.weights[slot * 5..][..5].iter().all(|&w| w == 0.0));
    }
    assert_eq!(b.tokens[4..8], [0, 1, P, P]);
    assert_eq!(b.images[image..2 * image], pixels(1));
}

#[test]
fn unknown_characters_replaced_or_dropped() {
    let setup = Setup { unknown: UnknownPolicy::Replace, ..ABC };
    let b = only_batch(Memory::of(&["aéb", "éé"]), setup, 2);
    assert_eq!(b.tokens[..4], [0, 1, P, P]);
    let replaced = |b: &Batch| b.flaws.iter().map(|f| (f.row, f.replaced)).collect::<Vec<_>>();
    assert_eq!((replaced(&b), b.real_rows, b.skipped[0].why.reason), (vec![(0, 1)], 1, "unknown_character"));
    let b = only_batch(Memory::of(&["aéb", "éé"]), Setup { vocabulary: "ab?", ..setup }, 2);
    assert_eq!(
        (b.tokens[..4].to_vec(), replaced(&b), b.real_rows),
        (vec![1, 0, 2, 3], vec![(0, 1), (1, 2)], 2)
    );
}

#[test]
fn warnings_are_kept_with_their_rows() {
    let mut source = Memory::of(&["a", "b", "c"]);
    source.warned.insert(1);
    let flaw = Flaw { slot: 1, row: 1, cut: false, replaced: 0, warnings: ANIMATED };
    assert_eq!(only_batch(source, ABC, 3).flaws, [flaw]);
}

#[test]
fn a_caption_longer_than_its_index_said_is_skipped_not_cut() {
    let source = Memory { lie: -1, ..Memory::of(&["aaa", "ab"]) };
    let b = only_batch(source, Setup { padding: Padding::Longest, max: None, ..ABC }, 2);
    assert_eq!((b.real_rows, b.skipped[0].row, b.skipped[0].why.reason), (1, 0, "caption_changed"));
}
