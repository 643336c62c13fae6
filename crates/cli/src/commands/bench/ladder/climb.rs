//! The measurements: each rung beside the one before it, in turns.
//!
//! Invariants: every rung trains the same weights under the same seed on the same batches, and its loss is read after the
//! same numbers of steps; a rung that cannot be is noted and left out, and the ladder goes on without it.

use super::report::{Against, Figures, Loss, Rung, Status, median};
use super::runner::Runner;
use super::tricks::{How, Switches, TRICKS, Trick, overrides};
use crate::console::clock;
use crate::output::{chain, warn};
use anyhow::bail;
use ocelli_config::{ConfigErrors, Request};
use ocelli_data::batch::Batch;
use ocelli_train::program::Size;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What all rungs have in common.
#[derive(Debug)]
pub struct Common {
    /// Of the user; the tricks' keys come behind.
    pub request: Request,
    pub size: Size,
    pub vocab: usize,
    /// Longest caption in tokens, and steps of a run: of the run that `train` would start.
    pub longest: usize,
    pub total: u64,
    pub batches: Arc<[Batch]>,
    /// Rows of a step.
    pub rows: usize,
    /// Steps of a turn, and turns.
    pub steps: usize,
    pub rounds: usize,
    pub interrupted: Arc<AtomicBool>,
}

/// A ladder being climbed.
#[derive(Debug)]
pub struct Climb<'a> {
    common: &'a Common,
    on: Switches,
    /// Name and milliseconds of the rung that was measured last.
    last: Option<(&'static str, f64)>,
    /// That rung, as long as there is memory for it.
    current: Option<Runner>,
    start_ms: Option<f64>,
    begin: Instant,
    /// Rungs behind and ahead.
    done: usize,
    left: usize,
}

/// A place on the ladder: the trick's name and title, how the title is announced, what is on.
struct Place<'t> {
    name: &'static str,
    title: &'static str,
    sign: &'t str,
    on: Switches,
}

impl<'a> Climb<'a> {
    /// At its foot.
    pub fn new(common: &'a Common) -> Self {
        let keys = TRICKS.iter().filter(|t| matches!(t.how, How::Key(_))).count();
        Self {
            common,
            on: [false; TRICKS.len()],
            last: None,
            current: None,
            start_ms: None,
            begin: Instant::now(),
            done: 0,
            left: 1 + 2 * keys,
        }
    }

    /// Everything off, then one trick more each.
    ///
    /// # Errors
    /// If it is interrupted.
    pub fn up(&mut self) -> anyhow::Result<Vec<Rung>> {
        let start = Place { name: "start", title: "everything off", sign: "", on: self.on };
        let (rung, runner) = self.rung(&start)?;
        self.start_ms = rung.figures.as_ref().map(|f| f.ms);
        self.stand_on(&rung, runner);
        let mut rungs = vec![rung];
        for (i, trick) in TRICKS.iter().enumerate() {
            rungs.push(match trick.how {
                How::Key(_) => self.add(i, trick)?,
                How::Elsewhere(why) => noted(trick.name, trick.title, &self.on, Status::NotHere, why.into()),
            });
        }
        Ok(rungs)
    }

    fn add(&mut self, i: usize, trick: &Trick) -> anyhow::Result<Rung> {
        let mut on = self.on;
        on[i] = true;
        let (rung, runner) = self.rung(&Place { name: trick.name, title: trick.title, sign: "+ ", on })?;
        if rung.status == Status::Measured {
            self.on = on;
            self.stand_on(&rung, runner);
        } else {
            // It is not taken away later either.
            self.left = self.left.saturating_sub(1);
        }
        Ok(rung)
    }

    /// All tricks that were measured but one, each beside all of them.
    ///
    /// # Errors
    /// If it is interrupted.
    pub fn without(&mut self) -> anyhow::Result<Vec<Rung>> {
        self.last = self.last.map(|(_, ms)| ("all", ms));
        let mut rungs = Vec::new();
        for (i, trick) in TRICKS.iter().enumerate() {
            let mut on = self.on;
            if !std::mem::take(&mut on[i]) {
                continue;
            }
            if self.current.is_none() {
                self.current = Runner::new(self.common, &self.on).ok();
            }
            rungs.push(self.rung(&Place { name: trick.name, title: trick.title, sign: "without ", on })?.0);
        }
        Ok(rungs)
    }

    /// The next rung is measured beside this one.
    fn stand_on(&mut self, rung: &Rung, runner: Option<Runner>) {
        self.last = rung.figures.as_ref().map(|f| (rung.name, f.ms)).or(self.last);
        self.current = runner;
    }

    /// Measures a rung; the rung before it stays loaded if it can.
    fn rung(&mut self, place: &Place<'_>) -> anyhow::Result<(Rung, Option<Runner>)> {
        self.announce(place);
        let measured = self.prepare(&place.on).and_then(|runner| match runner {
            Some(runner) => self.race(place, runner).map(Some),
            None => Ok(None),
        });
        self.done += 1;
        self.left = self.left.saturating_sub(1);
        if self.common.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted: nothing was written");
        }
        let Place { name, title, on, .. } = place;
        let note = |status, why: String| Ok((noted(name, title, on, status, why), None));
        match measured {
            Ok(Some((figures, runner))) => {
                let (keys, status) = (overrides(on), Status::Measured);
                Ok((Rung { name, title, status, why: None, keys, figures: Some(figures) }, Some(runner)))
            }
            Ok(None) => {
                note(Status::GpuOnly, "GPU only: here the plan is the same with it as without".into())
            }
            Err(error) => {
                let why = chain(&error);
                warn(&format!("  left out: {why}"));
                note(Status::Refused, why)
            }
        }
    }

    /// The step, or none if it is the very one of the rung before: then no switch of a CPU makes it another.
    fn prepare(&mut self, on: &Switches) -> anyhow::Result<Option<Runner>> {
        let runner = match Runner::new(self.common, on) {
            // There may be room for it alone.
            Err(e) if !e.is::<ConfigErrors>() && self.current.take().is_some() => {
                Runner::new(self.common, on)?
            }
            runner => runner?,
        };
        let same = self.current.as_ref().is_some_and(|c| c.on_cpu && c.plans() == runner.plans());
        Ok((!same).then_some(runner))
    }

    /// Turns of a rung and the one before, each first every second time.
    fn race(&mut self, place: &Place<'_>, mut runner: Runner) -> anyhow::Result<(Figures, Runner)> {
        let common = self.common;
        let (mut turns, mut others, mut loss) = (Vec::new(), Vec::new(), Vec::<Loss>::new());
        for round in 0..common.rounds {
            for first in [true, false] {
                if common.interrupted.load(Ordering::Relaxed) {
                    bail!("interrupted");
                }
                if first == (round % 2 == 0) {
                    if let Some(other) = &mut self.current {
                        others.push(other.turn(common.steps)?);
                    }
                } else {
                    turns.push(runner.turn(common.steps)?);
                    loss.extend(runner.loss()?);
                }
            }
        }
        let ms = median(&turns);
        let against = self.last.map(|(name, earlier)| {
            let ratios: Vec<f64> = others.iter().zip(&turns).map(|(a, b)| a / b).collect();
            let speedup = if ratios.is_empty() { earlier / ms } else { median(&ratios) };
            Against { name, turns: others, speedup }
        });
        let figures = Figures {
            ms,
            turns,
            images_per_s: common.rows as f64 / ms * 1e3,
            speedup: self.start_ms.map(|start| start / ms).or((place.name == "start").then_some(1.0)),
            against,
            memory: runner.memory(),
            launches: runner.launches(),
            plan: runner.plans(),
            loss,
        };
        Ok((figures, runner))
    }

    fn announce(&self, place: &Place<'_>) {
        let all = self.done + self.left;
        let eta = self.begin.elapsed().as_secs_f64() / self.done.max(1) as f64 * self.left as f64;
        let eta = match self.done {
            0 => String::new(),
            _ => format!(", ETA {}", clock(Duration::from_secs_f64(eta))),
        };
        warn(&format!("rung {} of {all}: {}{}{eta}", self.done + 1, place.sign, place.title));
    }
}

/// A rung without figures.
fn noted(name: &'static str, title: &'static str, on: &Switches, status: Status, why: String) -> Rung {
    Rung { name, title, status, why: Some(why), keys: overrides(on), figures: None }
}
