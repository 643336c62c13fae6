//! The words at the end of a run.

use crate::console::clock;
use ocelli_data::text::count;
use ocelli_train::report::{Counts, Ended, Summary};

/// What a run did, in a few lines.
pub fn finished(s: &Summary) -> String {
    let mut lines = odd_rows(&s.counts, " (listed in skipped.jsonl)");
    if s.bad_steps > 0 {
        let steps = count(s.bad_steps, "step");
        lines.push(format!(
            "skipped {steps}: loss or gradient no finite number (`bad_step` in metrics.jsonl)"
        ));
    }
    lines.push(match (s.ended, s.new_steps) {
        (Ended::Interrupted, 0) => "interrupted before the first step: nothing to save".into(),
        (Ended::Interrupted, _) => format!("interrupted and saved: {}", work(s)),
        (_, 0) if s.samples == 0 => format!("done: {}, none of them new", count(s.steps, "step")),
        _ => format!("done: {}", work(s)),
    });
    lines.join("\n")
}

fn work(s: &Summary) -> String {
    let rate = s.samples as f64 / s.training.as_secs_f64().max(1e-9);
    let (steps, samples) = (count(s.steps, "step"), count(s.samples, "sample"));
    format!("{steps}, {samples} in {} ({rate:.0} images/s)", clock(s.training))
}

/// What was odd about rows, a line each; `listed` says where the bad ones stand.
pub fn odd_rows(c: &Counts, listed: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if !c.skipped.is_empty() {
        let reasons: Vec<String> = c.skipped.iter().map(|(r, n)| format!("{n} {r}")).collect();
        lines.push(format!("skipped samples: {}{listed}", reasons.join(", ")));
    }
    if c.truncated > 0 {
        lines.push(format!("{} truncated to the length limit", count(c.truncated, "caption")));
    }
    if c.replaced > 0 {
        lines.push(format!("{} replaced", count(c.replaced, "unknown character")));
    }
    lines.extend(c.warnings.iter().map(|(word, &n)| format!("{} {}", count(n, "picture"), flaw(word))));
    lines
}

/// What it means that a picture was used with this flaw.
pub fn flaw(word: &str) -> String {
    match word {
        "no_end_marker" => "without end marker: used".into(),
        "animated" => "with several frames: the first was used".into(),
        "incomplete" => "without their finest detail, or with gaps: used as they are".into(),
        other => format!("with a flaw ({other}): used"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn summary(ended: Ended, new_steps: u64, counts: Counts) -> Summary {
        let samples = new_steps;
        let training = Duration::from_secs(1);
        Summary {
            ended,
            steps: 1 + new_steps,
            new_steps,
            samples,
            training,
            bad_steps: 0,
            validation_loss: None,
            padding: Default::default(),
            counts,
        }
    }

    #[test]
    fn odd_rows_are_said_in_singular_and_plural() {
        let counts = |n: u64| Counts {
            skipped: BTreeMap::from([("corrupt", n), ("truncated", 1)]),
            truncated: n,
            replaced: n,
            warnings: BTreeMap::from([("no_end_marker", n)]),
        };
        let text = |n| finished(&summary(Ended::Done, 4, counts(n)));
        assert_eq!(
            text(1),
            "skipped samples: 1 corrupt, 1 truncated (listed in skipped.jsonl)\n\
             1 caption truncated to the length limit\n1 unknown character replaced\n\
             1 picture without end marker: used\ndone: 5 steps, 4 samples in 0:01 (4 images/s)"
        );
        assert!(text(2).contains("2 captions truncated") && text(2).contains("2 pictures without"));
    }

    #[test]
    fn ends_are_told_apart() {
        let text = |ended, steps| finished(&summary(ended, steps, Counts::default()));
        assert_eq!(text(Ended::Interrupted, 0), "interrupted before the first step: nothing to save");
        assert!(text(Ended::Interrupted, 1).starts_with("interrupted and saved: 2 steps, 1 sample in"));
        assert_eq!(text(Ended::Done, 0), "done: 1 step, none of them new");
    }
}
