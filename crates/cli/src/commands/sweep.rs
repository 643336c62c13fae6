//! `ocelli train -m`: one run for each combination. All are checked before the first one starts, and a run that fails
//! stops no other.

use super::train::{Job, on_interrupt};
use crate::args::Train;
use crate::output::{arrived, error, say};
use anyhow::bail;
use ocelli_config as config;
use ocelli_data::text::count;
use std::sync::atomic::Ordering;

/// Combinations that are listed in one message.
const LISTED: usize = 20;

/// Trains once for each combination.
pub fn sweep(args: &Train) -> anyhow::Result<()> {
    let combinations = config::sweep(&args.overrides)?;
    let all = combinations.len();
    let swept = swept(&combinations);
    let label = |i: usize| {
        let own: Vec<&str> = swept.iter().map(|&at| combinations[i][at].as_str()).collect();
        format!("run {} of {all}: {}", i + 1, own.join(" "))
    };
    let jobs = checked(args, &combinations, &label)?;
    if args.print_config {
        for (i, job) in jobs.iter().enumerate() {
            if all > 1 {
                say(&format!("# {}", label(i)));
            }
            job.print();
        }
        return arrived();
    }
    let interrupted = on_interrupt()?;
    let mut failed = Vec::new();
    for (i, job) in jobs.into_iter().enumerate() {
        if interrupted.load(Ordering::Relaxed) {
            say(&format!("left out: {}", label(i)));
            continue;
        }
        if all == 1 {
            return job.run(args, &interrupted);
        }
        say(&label(i));
        if let Err(e) = job.run(args, &interrupted) {
            error(&e);
            failed.push(label(i));
        }
    }
    match failed.len() {
        0 => Ok(()),
        n => bail!("{n} of {} failed:{}", count(all, "run"), list(&failed)),
    }
}

/// The places of the overrides that are not the same in all combinations.
fn swept(combinations: &[Vec<String>]) -> Vec<usize> {
    let Some(first) = combinations.first() else { return Vec::new() };
    let differ = |at: &usize| combinations.iter().any(|other| other[*at] != first[*at]);
    let swept: Vec<usize> = (0..first.len()).filter(differ).collect();
    // Combinations may all be the same (`lr=1e-3,1e-3`): better all overrides than none.
    if swept.is_empty() { (0..first.len()).collect() } else { swept }
}

/// Every combination, checked as far as it can be before any data are opened.
fn checked(
    args: &Train,
    combinations: &[Vec<String>],
    label: &dyn Fn(usize) -> String,
) -> anyhow::Result<Vec<Job>> {
    let (mut jobs, mut wrong) = (Vec::new(), Vec::new());
    for (i, overrides) in combinations.iter().enumerate() {
        let job = Job::new(args, overrides);
        match job.and_then(|job| if args.print_config { Ok(job) } else { job.check().map(|()| job) }) {
            Ok(job) => jobs.push(job),
            Err(e) if combinations.len() == 1 => return Err(e),
            Err(e) => wrong.push(format!("{}\n    {}", label(i), e.to_string().replace('\n', "\n    "))),
        }
    }
    match wrong.len() {
        0 => Ok(jobs),
        n => bail!(
            "{n} of {} cannot start, so none was started:{}",
            count(combinations.len(), "run"),
            list(&wrong)
        ),
    }
}

fn list(lines: &[String]) -> String {
    let shown: String = lines.iter().take(LISTED).map(|line| format!("\n  {line}")).collect();
    match lines.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown}\n  and {more} more"),
    }
}
