//! Whether there is memory for what a trained model is used for: to caption, and to be measured.

use super::{Needs, Planned, Remedy, TooLarge, Work, of, remedies, room};
use crate::engine::{Captions, Kind, Setup};
use crate::error::TrainError;
use crate::program::Size;
use crate::settings;
use ocelli_config::Config;
use ocelli_ir::executor::{Executor, Target};
use ocelli_ir::memory::Room;

/// What a trained model is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Room for captions.
    pub captions: Captions,
    /// Tokens that they begin with, at most.
    pub prompt: usize,
    /// It is measured as well.
    pub measured: Option<Measured>,
}

/// The batches that a model is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Rows.
    pub rows: usize,
    /// Tokens of the longest.
    pub text: usize,
    /// Lengths that they are padded to: a program each.
    pub lengths: usize,
}

impl Task {
    /// The same over at most so many rows, or pictures side by side.
    fn at_most(self, rows: usize) -> Self {
        let side_by_side = self.captions.side_by_side.min(rows);
        let measured = self.measured.map(|m| Measured { rows: m.rows.min(rows), ..m });
        Self { captions: Captions { side_by_side, ..self.captions }, measured, ..self }
    }

    /// Rows, or pictures side by side.
    fn rows(self) -> usize {
        self.measured.map_or(0, |m| m.rows).max(self.captions.side_by_side)
    }

    fn kinds(self) -> Vec<Kind> {
        let measured = self.measured.map(|m| Kind::Evaluate(Size { batch: m.rows, text: m.text }));
        let prefill = Kind::Prefill(Size { batch: self.captions.side_by_side, text: self.prompt.max(1) });
        measured.into_iter().chain([prefill, Kind::Decode]).collect()
    }
}

/// What a trained model of a configuration is made from.
pub(crate) fn setup_of(c: &Config, vocab: usize, captions: Captions) -> Result<Setup, TrainError> {
    let model = settings::model(&c.model, vocab);
    model.check()?;
    Ok(Setup { model, optimizer: None, options: settings::passes(c), captions })
}

/// Finds out whether there is memory for a task. The plans that it made are returned, if it made any.
///
/// # Errors
/// If there is too little: how much it needs, how much is free, what to change. If its programs cannot be planned.
pub fn foresee_task(
    c: &Config,
    vocab: usize,
    task: Task,
    executor: &dyn Executor,
) -> Result<Planned, TrainError> {
    let Some(room) = room(executor)? else { return Ok(Planned::default()) };
    check_task(c, vocab, task, executor.target(), room)
}

/// [`foresee_task`] for a device with this room.
///
/// # Errors
/// As [`foresee_task`].
pub fn check_task(
    c: &Config,
    vocab: usize,
    task: Task,
    target: &dyn Target,
    room: Room,
) -> Result<Planned, TrainError> {
    let (needs, planned) = plan(c, vocab, task, target)?;
    if needs.bytes() <= room.free {
        return Ok(planned);
    }
    let bytes = |rows| task_needs(c, vocab, task.at_most(rows), target).map(|needs| needs.bytes());
    let (rows, at_least) = remedies::largest(task.rows(), |rows| Ok(bytes(rows)? <= room.free))?;
    let work = if task.measured.is_some() { Work::Measuring } else { Work::Captioning };
    let mut remedies = Vec::new();
    if rows > 0 && work == Work::Measuring {
        let overrides = format!("trainer_config.eval_batch_size={rows}");
        remedies.push(Remedy { overrides, note: "", bytes: bytes(rows)? });
    }
    let device = target.name().to_string();
    Err(TrainError::TooLarge(Box::new(TooLarge { device, work, needs, room, rows, at_least, remedies })))
}

/// What a task takes.
///
/// # Errors
/// If its programs cannot be planned.
pub fn task_needs(c: &Config, vocab: usize, task: Task, target: &dyn Target) -> Result<Needs, TrainError> {
    Ok(plan(c, vocab, task, target)?.0)
}

fn plan(c: &Config, vocab: usize, task: Task, target: &dyn Target) -> Result<(Needs, Planned), TrainError> {
    let setup = setup_of(c, vocab, task.captions)?;
    of(&setup, task.kinds(), task.measured.map_or(1, |m| m.lengths), target)
}
