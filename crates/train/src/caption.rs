//! Captions from pictures: greedy or by sampling, several pictures side by side, with cached keys and values.

use crate::engine::{Engine, EngineError};
use ocelli_data::tokenizer::Tokenizer;
use ocelli_ir::rng::Stream;

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0: always the likeliest. Above: logits are divided by it before sampling.
    pub temperature: f64,
    /// Only the k likeliest tokens are sampled from.
    pub top_k: Option<usize>,
    /// Keys the random choices; the same seed gives the same captions.
    pub seed: u64,
}

impl Sampling {
    /// Always the likeliest token.
    pub const GREEDY: Self = Self { temperature: 0.0, top_k: None, seed: 0 };
}

/// A caption as it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Caption {
    /// The text, prompt included.
    pub text: String,
    /// Tokens made, behind the prompt.
    pub tokens: usize,
    /// It ended with end-of-text, not at the length limit.
    pub complete: bool,
    /// Sum of the logarithms of the probabilities of the chosen tokens, end-of-text included; when sampling, of
    /// the probabilities after the division by the temperature. Finite, and at most 0.
    pub log_probability: f64,
}

/// Captions with one model.
#[derive(Debug)]
pub struct Captioner<'a> {
    /// The model.
    pub engine: &'a mut Engine,
    /// Its vocabulary.
    pub tokenizer: &'a dyn Tokenizer,
    /// Longest caption in tokens, prompt included; at most the engine's.
    pub limit: usize,
}

/// One caption under way.
struct Row {
    ids: Vec<u32>,
    stream: Stream,
    done: bool,
    complete: bool,
    log_probability: f64,
}

impl Captioner<'_> {
    /// Captions pictures, each `[S, S, 3]` u8, continuing `prompt`. Picture `i` draws from its own random stream:
    /// its caption does not depend on the others.
    ///
    /// # Errors
    /// If the device fails.
    pub fn caption(
        &mut self,
        pictures: &[&[u8]],
        prompt: &[u32],
        how: &Sampling,
    ) -> Result<Vec<Caption>, EngineError> {
        let numbered: Vec<(usize, &[u8])> = pictures.iter().copied().enumerate().collect();
        self.caption_numbered(&numbered, prompt, how)
    }

    /// As [`Captioner::caption`], with the number of each picture, which keys its random stream: so that pictures
    /// that come in parts, or with gaps, get the captions they would get all at once.
    ///
    /// # Errors
    /// If the device fails.
    pub fn caption_numbered(
        &mut self,
        pictures: &[(usize, &[u8])],
        prompt: &[u32],
        how: &Sampling,
    ) -> Result<Vec<Caption>, EngineError> {
        let mut captions = Vec::with_capacity(pictures.len());
        for group in pictures.chunks(self.engine.caption_batch()) {
            captions.extend(self.group(group, prompt, how)?);
        }
        Ok(captions)
    }

    fn group(
        &mut self,
        pictures: &[(usize, &[u8])],
        prompt: &[u32],
        how: &Sampling,
    ) -> Result<Vec<Caption>, EngineError> {
        let (width, side) = (self.engine.caption_batch(), self.engine.model().picture_side());
        let limit = self.limit.min(self.engine.caption_limit());
        let prompt = &prompt[..prompt.len().min(limit)];
        let mut images: Vec<u8> = pictures.iter().flat_map(|(_, pixels)| pixels.iter().copied()).collect();
        images.resize(width * side * side * 3, 0);
        // A prompt of no tokens still needs one place: it holds padding that nothing attends to later.
        let text = prompt.len().max(1);
        let pad = self.tokenizer.pad();
        let tokens: Vec<u32> =
            (0..width * text).map(|i| prompt.get(i % text).copied().unwrap_or(pad)).collect();
        let mut rows: Vec<Row> = pictures
            .iter()
            .map(|(number, _)| Row {
                ids: prompt.to_vec(),
                stream: Stream::new(how.seed, &format!("caption {number}")),
                done: false,
                complete: false,
                log_probability: 0.0,
            })
            .collect();
        let mut logits = self.engine.prefill(&images, &tokens, prompt.len())?;
        loop {
            self.choose(&mut rows, &logits, how, limit);
            let length = rows.iter().map(|r| r.ids.len()).max().unwrap_or(0);
            if rows.iter().all(|r| r.done) {
                break;
            }
            // Rows still going have all the same length; ended ones are fed padding.
            let last =
                |b: usize| rows.get(b).filter(|r| !r.done).and_then(|r| r.ids.last().copied()).unwrap_or(pad);
            let tokens: Vec<u32> = (0..width).map(last).collect();
            logits = self.engine.decode(&tokens, length)?;
        }
        let caption = |r: Row| Caption {
            text: self.tokenizer.decode(&r.ids),
            tokens: r.ids.len() - prompt.len(),
            complete: r.complete,
            log_probability: r.log_probability,
        };
        Ok(rows.into_iter().map(caption).collect())
    }

    /// Appends the next token to every row still going.
    fn choose(&self, rows: &mut [Row], logits: &[f32], how: &Sampling, limit: usize) {
        let vocab = self.tokenizer.vocab_size();
        for (row, logits) in rows.iter_mut().zip(logits.chunks(vocab)).filter(|(r, _)| !r.done) {
            // Padding is never an answer: it was never learnt as one, or only as "nothing more".
            let (id, log_p) = pick(logits, self.tokenizer.pad(), how, &mut row.stream);
            row.complete = Some(id) == self.tokenizer.end_of_text();
            row.done = row.complete || row.ids.len() >= limit;
            if !row.done {
                row.ids.push(id);
            }
            if !row.done || row.complete {
                row.log_probability += log_p;
            }
        }
    }
}

/// The next token and the logarithm of its probability under the (tempered) model.
fn pick(logits: &[f32], never: u32, how: &Sampling, stream: &mut Stream) -> (u32, f64) {
    let heat = if how.temperature > 0.0 { how.temperature } else { 1.0 };
    let mut order: Vec<(u32, f64)> = logits
        .iter()
        .enumerate()
        .filter(|(i, x)| *i as u32 != never && !x.is_nan())
        // Infinite ones would make the differences below no numbers.
        .map(|(i, x)| (i as u32, f64::from(x.clamp(f32::MIN, f32::MAX))))
        .collect();
    // Likeliest first; of equals the lower id, so that the choice is the same everywhere.
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let Some(&(best, top)) = order.first() else { return (never, 0.0) };
    // The largest becomes 0 before the division: no temperature overflows.
    order.iter_mut().for_each(|(_, x)| *x = (*x - top) / heat);
    let total: f64 = order.iter().map(|(_, x)| x.exp()).sum();
    if how.temperature <= 0.0 {
        return (best, -total.ln());
    }
    // What can never be drawn must not be the last resort either.
    order.retain(|(_, x)| x.exp() > 0.0);
    order.truncate(how.top_k.unwrap_or(order.len()).max(1));
    let kept: f64 = order.iter().map(|(_, x)| x.exp()).sum();
    let mut left = stream.unit() * kept;
    let chosen = order.iter().find(|(_, x)| {
        left -= x.exp();
        left < 0.0
    });
    let &(id, x) = chosen.unwrap_or(&order[order.len() - 1]);
    (id, x - total.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_likeliest_and_never_padding() {
        let mut s = Stream::new(0, "x");
        let (id, p) = pick(&[1.0, 3.0, 9.0, 3.0], 2, &Sampling::GREEDY, &mut s);
        assert_eq!(id, 1);
        let total = 2.0 * 1.0_f64 + (-2.0_f64).exp();
        assert!((p + total.ln()).abs() < 1e-12);
    }

    #[test]
    fn no_temperature_and_no_logits_overflow() {
        let tiny = Sampling { temperature: 1e-308, top_k: None, seed: 0 };
        let mut s = Stream::new(0, "x");
        assert_eq!(pick(&[1.0, 3.0, 2.0], 9, &tiny, &mut s), (1, 0.0));
        // Two that are equal share the probability, however cold it is.
        assert_eq!(pick(&[3.0, 3.0, 2.0], 9, &tiny, &mut s).1, -(2.0_f64.ln()));
        for temperature in [0.0, 1e-308, 1.0, 1e308] {
            let how = Sampling { temperature, top_k: None, seed: 0 };
            let logits = [f32::NEG_INFINITY, f32::INFINITY, f32::NAN, 1.0];
            (0..50).for_each(|_| assert!(pick(&logits, 9, &how, &mut s).1.is_finite()));
        }
    }

    #[test]
    fn sampling_follows_the_probabilities_and_top_k() {
        let logits = [0.0, (3.0_f32).ln(), f32::NEG_INFINITY, (6.0_f32).ln(), 50.0];
        let count = |how: Sampling| {
            let mut s = Stream::new(1, "sampling");
            let mut counts = [0; 5];
            (0..20_000).for_each(|_| counts[pick(&logits, 4, &how, &mut s).0 as usize] += 1);
            counts
        };
        let all = count(Sampling { temperature: 1.0, top_k: None, seed: 0 });
        assert!(all[2] == 0 && all[4] == 0, "{all:?}");
        for (have, want) in [(all[0], 0.1), (all[1], 0.3), (all[3], 0.6)] {
            assert!((f64::from(have) / 20_000.0 - want).abs() < 0.015, "{all:?}");
        }
        let two = count(Sampling { temperature: 1.0, top_k: Some(2), seed: 0 });
        assert!(two[0] == 0 && (f64::from(two[1]) / 20_000.0 - 1.0 / 3.0).abs() < 0.015, "{two:?}");
    }
}
