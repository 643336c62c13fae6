//! How good captions are, measured as the field measures it: exact match, BLEU-1..4, CIDEr, ROUGE-L and an exact-match
//! METEOR, over pairs of a candidate and its references.
//!
//! Invariants: BLEU, CIDEr and ROUGE-L equal the Python package `pycocoevalcap` (1.2) on the same tokens to 1e-6, and
//! [`tokens`] stands in for its Java tokenizer; results depend on the pairs alone, bit for bit; no input makes a score
//! that is no number. Texts go in as they are: the tokenizer lowers their case and drops punctuation.
mod bleu;
mod cider;
mod meteor;
mod ngrams;
mod rouge;
mod tokenize;

pub use bleu::bleu;
pub use cider::cider;
pub use meteor::meteor_exact;
pub use rouge::rouge_l;
pub use tokenize::tokens;

/// A caption, as text and as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Caption {
    text: String,
    tokens: Vec<String>,
}

impl Caption {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), tokens: tokens(text) }
    }
}

/// What is said of a picture, and what people said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    candidate: Caption,
    references: Vec<Caption>,
}

impl Pair {
    /// A caption to be judged, and those it is judged by; without any it scores 0.
    pub fn new(candidate: &str, references: &[impl AsRef<str>]) -> Self {
        let references = references.iter().map(|text| Caption::new(text.as_ref())).collect();
        Self { candidate: Caption::new(candidate), references }
    }

    fn candidate(&self) -> &[String] {
        &self.candidate.tokens
    }

    fn references(&self) -> impl ExactSizeIterator<Item = &[String]> {
        self.references.iter().map(|caption| &caption.tokens[..])
    }
}

/// All scores of a set of pairs. All are 0 for a set without pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// See [`exact_match`].
    pub exact_match: f64,
    /// See [`bleu`].
    pub bleu: [f64; 4],
    /// See [`cider`].
    pub cider: f64,
    /// See [`rouge_l`].
    pub rouge_l: f64,
    /// See [`meteor_exact`].
    pub meteor_exact: f64,
}

impl Scores {
    /// Computes all of them.
    pub fn of(pairs: &[Pair]) -> Self {
        Self {
            exact_match: exact_match(pairs),
            bleu: bleu(pairs),
            cider: cider(pairs),
            rouge_l: rouge_l(pairs),
            meteor_exact: meteor_exact(pairs),
        }
    }
}

/// The share of candidates, 0 to 1, that are one of their references, character by character (white space at both ends
/// left out).
pub fn exact_match(pairs: &[Pair]) -> f64 {
    let same = |p: &Pair| p.references.iter().any(|r| r.text.trim() == p.candidate.text.trim());
    mean(pairs, |p| f64::from(u8::from(same(p))))
}

/// The mean over pairs; 0 without any.
fn mean(pairs: &[Pair], score: impl Fn(&Pair) -> f64) -> f64 {
    pairs.iter().map(score).sum::<f64>() / pairs.len().max(1) as f64
}
