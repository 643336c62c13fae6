//! A sweep: `k=a,b` stands for one run with `k=a` and one with `k=b`; several sweeps combine.

use super::parse;
use crate::error::{ConfigErrors, Problem, ProblemKind};
use crate::node::Origin;

/// More runs than anyone can wait for: a slip, or a denial of service.
const MAX_RUNS: usize = 10_000;

/// The overrides of each run, the last sweep moving fastest. Overrides without commas are in every run;
/// without any sweep there is one run.
///
/// # Errors
/// Overrides that do not parse (all of them), or more than 10,000 runs.
pub fn sweep(overrides: &[String]) -> Result<Vec<Vec<String>>, ConfigErrors> {
    let mut problems = Vec::new();
    let mut runs: Vec<Vec<String>> = vec![Vec::new()];
    for (number, text) in overrides.iter().enumerate() {
        let choices = match parse(number, text) {
            Ok(parsed) if parsed.values.len() > 1 => {
                let head = &text[..text.find('=').unwrap_or(text.len())];
                parsed.values.iter().map(|(value, _)| format!("{head}={value}")).collect()
            }
            Ok(_) => vec![text.clone()],
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        if runs.len().saturating_mul(choices.len()) > MAX_RUNS {
            let what = format!("the sweep has more than {MAX_RUNS} runs");
            let kind = ProblemKind::Conflict(what);
            return Err(Problem { origin: Origin::Default, key: None, kind }.into());
        }
        runs = runs
            .iter()
            .flat_map(|run| {
                choices.iter().map(|choice| [run.as_slice(), std::slice::from_ref(choice)].concat())
            })
            .collect();
    }
    if problems.is_empty() { Ok(runs) } else { Err(ConfigErrors(problems)) }
}
