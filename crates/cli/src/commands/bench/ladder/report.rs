//! What a ladder measured, as `ladder.json` holds it. `docs/tricks.md` describes the fields.

use serde::Serialize;

/// The format of `ladder.json`; a change of meaning raises it.
pub const VERSION: u32 = 1;

/// A whole ladder.
#[derive(Debug, Serialize)]
pub struct Ladder {
    /// `ocelli-ladder`.
    pub schema: &'static str,
    pub version: u32,
    /// Local time with its offset (RFC 3339).
    pub made: String,
    pub ocelli: Ocelli,
    pub machine: Machine,
    pub settings: Settings,
    /// Everything off, then a trick more each, in the published order.
    pub rungs: Vec<Rung>,
    /// All tricks but one.
    pub without: Vec<Rung>,
}

/// The program that measured.
#[derive(Debug, Serialize)]
pub struct Ocelli {
    pub version: &'static str,
    /// The commit that it was built from, if that is known.
    pub commit: Option<&'static str>,
}

/// What it measured on.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// `cuda` or `cpu`.
    pub device: String,
    /// `NVIDIA H200`, or the processor's name.
    pub name: String,
    /// NVIDIA's driver, if there is one.
    pub driver: Option<String>,
    /// More about a GPU, and its host's processor.
    pub about: String,
    /// Processors that the program may use.
    pub cores: usize,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Settings {
    pub config: String,
    pub overrides: Vec<String>,
    pub batch: usize,
    /// Text tokens of a row.
    pub length: usize,
    pub vocab: usize,
    /// Batches of a step.
    pub grad_accum: usize,
    pub seed: u64,
    /// Steps of a turn, and turns.
    pub steps: usize,
    pub rounds: usize,
    /// Steps before the first turn.
    pub warm_up: usize,
}

/// One rung.
#[derive(Debug, Serialize)]
pub struct Rung {
    /// `start`, or that of the trick that is added (or taken away).
    pub name: &'static str,
    pub title: &'static str,
    pub status: Status,
    /// Why there are no figures.
    pub why: Option<String>,
    /// The tricks' keys as they were set.
    pub keys: Vec<String>,
    pub figures: Option<Figures>,
}

/// Whether there are figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Measured,
    /// This trick changes nothing on this device: it is for GPUs.
    GpuOnly,
    /// It cannot be measured by steps over drawn batches.
    NotHere,
    /// The program refused these settings, or failed under them.
    Refused,
}

/// What was measured of a rung.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Milliseconds a step: of each turn, and their median.
    pub ms: f64,
    pub turns: Vec<f64>,
    pub images_per_s: f64,
    /// How many times as fast as with everything off.
    pub speedup: Option<f64>,
    pub against: Option<Against>,
    pub memory: Memory,
    /// Launches of a step.
    pub launches: usize,
    /// The programs of a step, each with the hash of its plan.
    pub plan: Vec<String>,
    pub loss: Vec<Loss>,
}

/// The rung that took turns with this one.
#[derive(Debug, Serialize)]
pub struct Against {
    pub name: &'static str,
    /// Milliseconds a step of each of its turns; none if memory had no room for both: then its earlier median counts.
    pub turns: Vec<f64>,
    /// How many times as fast this rung is: the median over the rounds.
    pub speedup: f64,
}

/// Bytes on the device, known from the plan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Memory {
    /// Weights, moments, counters, caches of captions.
    pub state: usize,
    /// Activations and gradients.
    pub scratch: usize,
    /// Workspaces of kernels, inputs.
    pub other: usize,
    pub total: usize,
}

/// The mean loss of a batch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Loss {
    /// That of this step, from 1.
    pub step: u64,
    pub loss: f64,
}

impl Rung {
    /// The figures' loss after the last step.
    pub fn last_loss(&self) -> Option<f64> {
        self.figures.as_ref()?.loss.last().map(|l| l.loss)
    }
}

/// A number with six digits behind the point, as many as files need.
pub fn short(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// The middle one of numbers, or of the middle two the mean.
pub fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.get(sorted.len() / 2));
    lower.zip(upper).map_or(f64::NAN, |(a, b)| f64::midpoint(*a, *b))
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
