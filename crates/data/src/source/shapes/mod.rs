//! The built-in data: drawn pictures with captions that are true of them.
//!
//! Row `i` is a function of `(seed, split, i)` alone, so rows can be read in any order, by any thread, and a
//! set can be as long as one likes. Some combinations of size, colour and shape ([`Object::is_held_out`])
//! never occur in a training picture; every validation picture has at least one of them. A model that
//! learns the attributes, not the pictures, gets those right too.

mod baseline;
mod draw;
mod scene;
mod score;

use ocelli_ir::rng::{Stream, hash_name, mix};

use super::fingerprint::Fingerprint;
use super::{BadSample, Sample, Source};
use crate::image::Warnings;
use crate::stages::{Stage, timed};
use crate::text::count;
pub use baseline::{Baseline, chance, commonest};
pub use scene::{Colour, Object, Place, Scene, Shape, Size};
pub use score::{Score, score};

/// Changes whenever a row would be drawn otherwise, so that a resume on other data is noticed.
const VERSION: &str = "shapes 1";

/// Which part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// No picture has a held-out combination.
    Train,
    /// Every picture has at least one held-out combination.
    Validation,
}

/// A set of drawn pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shapes {
    seed: u64,
    split: Split,
    len: usize,
}

impl Shapes {
    /// The first `len` rows of `split` under `seed`. There is no end to the rows: nothing is stored, and
    /// `len` may be as large as `u32::MAX`.
    pub fn new(seed: u64, split: Split, len: usize) -> Self {
        Self { seed, split, len }
    }

    /// What is in the picture of `row`.
    pub fn scene(&self, row: usize) -> Scene {
        Scene::draw(&mut self.stream("scene", row), self.split)
    }

    /// The scenes of the first rows, at most `most`: to measure [`chance`] and [`commonest`] on.
    pub fn scenes(&self, most: usize) -> Vec<Scene> {
        (0..self.len.min(most)).map(|row| self.scene(row)).collect()
    }

    /// The picture of `row`: `size x size` pixels, RGB, row by row.
    pub fn picture(&self, row: usize, size: usize) -> Vec<u8> {
        let mut pixels = vec![0; size * size * 3];
        draw::draw(&self.scene(row), &mut self.stream("picture", row), size, &mut pixels);
        pixels
    }

    /// The scene and its drawing have random numbers of their own, so that a change in one leaves the other.
    fn stream(&self, what: &str, row: usize) -> Stream {
        let split = match self.split {
            Split::Train => "train",
            Split::Validation => "validation",
        };
        let key = mix(mix(self.seed ^ hash_name(what)) ^ hash_name(split));
        Stream::keyed(key.wrapping_add(row as u64))
    }
}

impl Source for Shapes {
    fn len(&self) -> usize {
        self.len
    }

    fn caption_chars(&self, row: usize) -> usize {
        self.scene(row).caption().len()
    }

    fn caption(&self, row: usize) -> Result<String, BadSample> {
        Ok(self.scene(row).caption())
    }

    fn read(&self, row: usize, size: usize, pixels: &mut [u8]) -> Result<Sample, BadSample> {
        let original = (size as u32, size as u32);
        let scene = self.scene(row);
        timed(Stage::Decode, || draw::draw(&scene, &mut self.stream("picture", row), size, pixels));
        Ok(Sample { caption: scene.caption(), original, warnings: Warnings::default() })
    }

    fn describe(&self) -> String {
        let split = match self.split {
            Split::Train => "training",
            Split::Validation => "validation",
        };
        format!("shapes, drawn from seed {} ({})", self.seed, count(self.len, &format!("{split} row")))
    }

    fn fingerprint(&self) -> u64 {
        let mut print = Fingerprint::new(VERSION);
        for number in [self.seed, self.split as u64, self.len as u64] {
            print.number(number);
        }
        print.value()
    }
}
