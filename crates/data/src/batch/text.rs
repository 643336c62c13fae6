//! From a caption's ids to tokens, targets and weights: the two losses (`data_config.loss`).
//!
//! Place 0 of targets and weights is the image's; place `i` belongs to the `i`-th character of the caption,
//! from 1. Padding is known by place, never by id.
use serde::{Deserialize, Serialize};

use super::lengths::TextLength;

/// Which places of a caption are learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossMode {
    /// The image predicts the first character, each character the next, and the last one the end of the
    /// text. Padding does not count. A caption that was cut has no end, so its last place does not count.
    Masked,
    /// As the published recipe: the image predicts nothing, the last character predicts padding, and padding
    /// predicts padding, all of which counts. A caption that was cut does not teach to stop at the cut: the
    /// place of its last character does not count.
    Published,
}

/// A caption, encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// At least one id, at most as many as the batch counts.
    pub(crate) ids: Vec<u32>,
    /// There was more of it.
    pub(crate) cut: bool,
}

/// How the captions of one batch are laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) mode: LossMode,
    pub(crate) length: TextLength,
    pub(crate) pad: u32,
    /// What [`LossMode::Masked`] puts behind a caption.
    pub(crate) end: u32,
}

impl Layout {
    /// Fills one row: `tokens` is `[T]`, `targets` and `weights` are `[T + 1]`.
    pub(super) fn fill(&self, text: &Text, tokens: &mut [u32], targets: &mut [u32], weights: &mut [f32]) {
        let (ids, n) = (&text.ids, text.ids.len());
        self.blank(tokens, targets, weights);
        tokens[..n].copy_from_slice(ids);
        match self.mode {
            LossMode::Masked => {
                targets[..n].copy_from_slice(ids);
                weights[..n].fill(1.0);
                if !text.cut {
                    targets[n] = self.end;
                    weights[n] = 1.0;
                }
            }
            LossMode::Published => {
                targets[1..n].copy_from_slice(&ids[1..]);
                weights[1..=self.length.counted].fill(1.0);
                if text.cut {
                    weights[n] = 0.0;
                }
            }
        }
    }

    /// Makes a row count for nothing.
    pub(super) fn blank(&self, tokens: &mut [u32], targets: &mut [u32], weights: &mut [f32]) {
        tokens.fill(self.pad);
        targets.fill(self.pad);
        weights.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAD: u32 = 77;
    const END: u32 = 78;

    type Arrays = (Vec<u32>, Vec<u32>, Vec<f32>);

    fn filled(mode: LossMode, ids: &[u32], cut: bool, counted: usize, padded: usize) -> Arrays {
        // Rubbish at first: every place must be written.
        let mut arrays = (vec![5; padded], vec![5; padded + 1], vec![0.5; padded + 1]);
        let text = Text { ids: ids.to_vec(), cut };
        let layout = Layout { mode, length: TextLength { counted, padded }, pad: PAD, end: END };
        layout.fill(&text, &mut arrays.0, &mut arrays.1, &mut arrays.2);
        arrays
    }

    #[test]
    fn masked() {
        assert_eq!(
            filled(LossMode::Masked, &[10, 11, 12], false, 5, 6),
            (
                vec![10, 11, 12, PAD, PAD, PAD],
                vec![10, 11, 12, END, PAD, PAD, PAD],
                vec![1., 1., 1., 1., 0., 0., 0.]
            )
        );
    }

    #[test]
    fn masked_caption_that_fills_the_row_still_ends() {
        assert_eq!(
            filled(LossMode::Masked, &[10, 11, 12], false, 3, 3),
            (vec![10, 11, 12], vec![10, 11, 12, END], vec![1., 1., 1., 1.])
        );
    }

    #[test]
    fn masked_caption_that_was_cut_has_no_end() {
        assert_eq!(
            filled(LossMode::Masked, &[10, 11, 12], true, 3, 3),
            (vec![10, 11, 12], vec![10, 11, 12, PAD], vec![1., 1., 1., 0.])
        );
    }

    #[test]
    fn published_counts_padding_but_not_what_rounding_added() {
        assert_eq!(
            filled(LossMode::Published, &[10, 11, 12], false, 5, 7),
            (
                vec![10, 11, 12, PAD, PAD, PAD, PAD],
                vec![PAD, 11, 12, PAD, PAD, PAD, PAD, PAD],
                vec![0., 1., 1., 1., 1., 1., 0., 0.]
            )
        );
    }

    #[test]
    fn published_caption_that_was_cut_does_not_teach_to_stop() {
        assert_eq!(
            filled(LossMode::Published, &[10, 11, 12], true, 3, 3),
            (vec![10, 11, 12], vec![PAD, 11, 12, PAD], vec![0., 1., 1., 0.])
        );
        assert_eq!(
            filled(LossMode::Published, &[10], false, 1, 2),
            (vec![10, PAD], vec![PAD, PAD, PAD], vec![0., 1., 0.])
        );
    }

    /// A caption may hold any id, even one that looks like padding: places decide.
    #[test]
    fn padding_is_known_by_place() {
        let (_, _, weights) = filled(LossMode::Masked, &[PAD, PAD], false, 4, 4);
        assert_eq!(weights, [1., 1., 1., 0., 0.]);
    }
}
