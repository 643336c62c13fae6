//! What a run tells while it goes. The command line prints it, tests collect it; training never prints.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How a run stands after some steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Epoch in progress.
    pub epoch: u64,
    /// Optimiser steps taken in the whole run.
    pub step: u64,
    /// Steps that the run will take.
    pub total: u64,
    /// Mean loss over the steps since the last report, weighted by tokens.
    pub loss: f64,
    /// Learning rate of the last step.
    pub lr: f64,
    /// Norm of the last gradient before clipping.
    pub grad_norm: f64,
    /// Real samples a second.
    pub images_per_s: f64,
    /// Milliseconds a step, waiting for data included.
    pub ms_per_step: f64,
    /// Share of the time spent waiting for data.
    pub data_wait: f64,
    /// Time left at this speed.
    pub eta: Duration,
}

/// How well predicted captions name what is in drawn pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attributes {
    /// Pictures looked at.
    pub pictures: usize,
    /// Share of attributes right.
    pub right: f64,
    /// The share that a random valid caption gets.
    pub chance: f64,
    /// The share that the best constant caption gets.
    pub commonest: f64,
}

/// What was odd about the rows of a run, training and validation together. A row of a split counts once, however
/// often it was drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that could not be used, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Rows whose caption was cut to the length limit.
    pub truncated: u64,
    /// Characters that the vocabulary lacks and that were replaced or dropped.
    pub replaced: u64,
    /// Rows used in spite of a flaw of their picture, by its word.
    pub warnings: BTreeMap<&'static str, u64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of its steps are taken.
    Done,
    /// From outside, before that.
    Interrupted,
    /// Too many samples could not be used.
    BadSamples,
    /// No place of any caption counts for the loss.
    NoWeight,
}

/// Places of text that a part of a run computed: tokens of captions and padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    /// All of them, of the rows that were drawn.
    pub places: u64,
    /// As many there would have been if rows were not brought together by length.
    pub unsorted: u64,
    /// Those with a token of a caption.
    pub captions: u64,
}

/// What a whole run did.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How it ended.
    pub ended: Ended,
    /// Optimiser steps taken, those of earlier parts included.
    pub steps: u64,
    /// Optimiser steps taken in this part.
    pub new_steps: u64,
    /// Samples trained on in this part.
    pub samples: u64,
    /// Time spent training in this part, validation and saving left out.
    pub training: Duration,
    /// Steps of this part that were skipped: loss or gradient was no finite number.
    pub bad_steps: u64,
    /// The last validation loss.
    pub validation_loss: Option<f64>,
    /// Places of text in this part.
    pub padding: Padding,
    /// Odd rows.
    pub counts: Counts,
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A line for a person.
    Note(&'a str),
    /// A line for a person about something that may be wrong.
    Warning(&'a str),
    /// What is waited for and for how long, a line, every few seconds.
    Waiting(&'a str),
    /// How far a file is that is fetched from the hub, in bytes.
    Fetching {
        /// Its name in the data set.
        name: &'a str,
        /// Bytes there.
        done: u64,
        /// Bytes of the whole file.
        total: u64,
    },
    /// Nothing is fetched any more.
    Fetched,
    /// How many rows of a source have been looked at, where that is all that is done.
    Looked {
        /// Rows looked at.
        done: usize,
        /// All of them.
        total: usize,
    },
    /// One step, when every step is asked for.
    Step {
        /// Epoch in progress.
        epoch: u64,
        /// Optimiser steps taken in the whole run.
        step: u64,
        /// Its time, waiting for data included.
        time: Duration,
    },
    /// The state of things, every `log_interval` steps.
    Progress(&'a Progress),
    /// The loss on the validation split.
    Validation {
        /// Epoch in progress, or just ended.
        epoch: u64,
        /// Optimiser steps taken.
        step: u64,
        /// Mean loss a token.
        loss: f64,
        /// An epoch has just ended.
        epoch_ended: bool,
    },
    /// A snapshot was written.
    Saved(&'a Path),
    /// A validation picture's caption and what the model says.
    Sample {
        /// What stands in the data.
        truth: &'a str,
        /// What the model says.
        predicted: &'a str,
    },
    /// How many attributes of drawn pictures were named right.
    Attributes(Attributes),
    /// The run ended well.
    Finished(&'a Summary),
}

/// Takes what a run tells.
pub trait Reporter {
    /// Something happened.
    fn event(&mut self, event: &Event<'_>);
}
