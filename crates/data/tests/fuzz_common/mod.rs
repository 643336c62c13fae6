//! What is fuzzed and how, for `tests/fuzz.rs` (some thousand files, in every run of the tests) and for
//! `examples/fuzz_decoders.rs` (as many as wanted). A case is a function of its seed alone.
//!
//! To fuzz another reader, write its [`Target`] in a file beside `sources.rs`, and name it in [`targets`].

mod mutate;
mod pictures;
mod sources;

pub use mutate::mutated;

/// A reader of bytes that anybody may have written.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Whole files of every kind that it reads.
    pub files: Vec<Vec<u8>>,
    /// Makes checksums right again, so that damage reaches what stands behind them.
    pub mend: fn(&mut [u8]),
    /// Reads one file. The second argument chooses among options.
    pub read: fn(&[u8], u64) -> Verdict,
    /// The most memory that one file may cost, in bytes, beside four times its length.
    pub memory: usize,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was read, and what came of it is sound.
    Accepted,
    /// It was refused, for a reason with a stable word.
    Refused(&'static str),
    /// A fault of the reader.
    Wrong(String),
}

/// All readers.
pub fn targets() -> Vec<Target> {
    [pictures::target()].into_iter().chain(sources::targets()).collect()
}

impl Target {
    /// The file of a seed.
    pub fn case(&self, seed: u64) -> Vec<u8> {
        mutated(self, seed)
    }
}
