//! Whether a run fits into a device's memory, or what a trained model is used for: told from plans, before anything is
//! allocated.
//!
//! A plan is a function of the configuration and of what the device's target answers, so that the needs of any other
//! batch are known as well, by planning it.

mod remedies;
mod used;

use crate::engine::{Kind, Setup};
use crate::error::TrainError;
use crate::program::Size;
use crate::run;
use ocelli_config::Config;
use ocelli_data::text::count;
use ocelli_ir::executor::{Executor, Target};
use ocelli_ir::memory::{Footprint, Room};
use ocelli_ir::plan::Plan;
pub use remedies::Remedy;
use std::fmt;
pub(crate) use used::setup_of;
pub use used::{Measured, Task, check_task, foresee_task, task_needs};

/// What the programs of a run depend on beside its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Longest caption, in tokens.
    pub text: usize,
    /// Lengths that batches are padded to: a program each.
    pub lengths: usize,
    /// Whether the run evaluates and captions.
    pub validates: bool,
}

/// Device memory that a run takes, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Weights, moments, sums of gradients, caches of captioning.
    pub state: usize,
    /// All programs together.
    pub programs: Footprint,
    /// Compiled kernels and libraries, at most.
    pub overhead: usize,
    /// The program with the most scratch memory.
    pub largest: String,
}

impl Needs {
    /// In all.
    pub fn bytes(&self) -> usize {
        self.state + self.programs.bytes() + self.overhead
    }
}

/// Plans that were made to foresee what they take, for an engine that is to run them.
#[derive(Debug, Default)]
pub struct Planned(pub(crate) Vec<(Kind, Plan)>);

/// What needs the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A run.
    Training,
    /// A trained model is measured.
    Measuring,
    /// A trained model captions.
    Captioning,
}

/// What does not fit, and what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Name of the device.
    pub device: String,
    /// What for.
    pub work: Work,
    /// What it takes.
    pub needs: Needs,
    /// What there is.
    pub room: Room,
    /// The largest batch that fits, in rows, or pictures side by side; 0 if not even one does.
    pub rows: usize,
    /// A larger one may fit: the time to look for it was over.
    pub at_least: bool,
    /// What to change, each enough by itself.
    pub remedies: Vec<Remedy>,
}

/// Finds out whether a run that is made from `setup` will fit. The plans that it made are returned, if it made any.
///
/// # Errors
/// If it will not: how much it needs, how much is free, the largest batch that fits, what to change. If its programs
/// cannot be planned.
pub fn foresee(
    c: &Config,
    load: Load,
    setup: &Setup,
    executor: &dyn Executor,
) -> Result<Planned, TrainError> {
    let Some(room) = room(executor)? else { return Ok(Planned::default()) };
    let (needs, planned) = of(setup, kinds(c, load, setup), load.lengths, executor.target())?;
    fits(c, load, executor.target(), room, needs).map(|()| planned)
}

/// The device's room, if it has one of its own.
fn room(executor: &dyn Executor) -> Result<Option<Room>, TrainError> {
    Ok(executor.room().map_err(crate::engine::EngineError::from)?)
}

/// Whether a run will fit into this room.
///
/// # Errors
/// As [`foresee`].
pub fn check(c: &Config, load: Load, target: &dyn Target, room: Room) -> Result<(), TrainError> {
    let needs = needs(c, load, target)?;
    fits(c, load, target, room, needs)
}

fn fits(c: &Config, load: Load, target: &dyn Target, room: Room, needs: Needs) -> Result<(), TrainError> {
    if needs.bytes() <= room.free {
        return Ok(());
    }
    let (rows, at_least, remedies) = remedies::find(c, load, target, room.free)?;
    let (device, work) = (target.name().to_string(), Work::Training);
    Err(TrainError::TooLarge(Box::new(TooLarge { device, work, needs, room, rows, at_least, remedies })))
}

/// What a run takes. The programs for shorter captions are counted as large as that for the longest.
///
/// # Errors
/// If its programs cannot be planned.
pub fn needs(c: &Config, load: Load, target: &dyn Target) -> Result<Needs, TrainError> {
    let setup = run::setup(c, load.vocab, load.text, 1)?;
    let kinds = kinds(c, load, &setup);
    Ok(of(&setup, kinds, load.lengths, target)?.0)
}

/// The programs of a run.
fn kinds(c: &Config, load: Load, setup: &Setup) -> Vec<Kind> {
    let size = |batch| Size { batch, text: load.text };
    let mut kinds = setup.step(size(c.trainer.train_batch_size));
    if load.validates {
        let prefill = Kind::Prefill(Size { batch: setup.captions.side_by_side, text: 1 });
        kinds.extend([Kind::Evaluate(size(c.trainer.eval_batch_size)), prefill, Kind::Decode]);
    }
    kinds
}

/// What programs take, and their plans.
fn of(
    setup: &Setup,
    kinds: Vec<Kind>,
    lengths: usize,
    target: &dyn Target,
) -> Result<(Needs, Planned), TrainError> {
    let (spec, plans) = setup.plans(&kinds, target)?;
    let aligned = |bytes: usize| bytes.next_multiple_of(target.alignment());
    let mut needs = Needs {
        state: spec.iter().map(|(_, slot)| aligned(slot.ty.bytes())).sum(),
        programs: Footprint::default(),
        overhead: target.overhead(),
        largest: String::new(),
    };
    for (kind, plan) in kinds.iter().zip(&plans) {
        let one = target.footprint(plan);
        if one.arena >= needs.programs.arena {
            needs.largest.clone_from(&plan.name);
        }
        let by_length = matches!(kind, Kind::Train(_) | Kind::Accumulate(_) | Kind::Evaluate(_));
        let own = one.own * if by_length { lengths } else { 1 };
        needs.programs = needs.programs.beside(Footprint { own, ..one });
    }
    Ok((needs, Planned(kinds.into_iter().zip(plans).collect())))
}

/// Bytes for a person.
pub fn gb(bytes: usize) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, work, needs, room, rows, .. } = self;
        let (what, state) = match work {
            Work::Training => ("the run", "weights and optimiser state"),
            Work::Measuring => ("the evaluation", "weights and keys and values of captions"),
            Work::Captioning => ("captioning", "weights and keys and values of captions"),
        };
        let Footprint { arena, work: shared, own } = needs.programs;
        write!(
            f,
            "{device}: there is too little memory: {what} needs {}, {} of {} are free. It needs {} for {state}, \
             {} of scratch memory (program '{}'), {} for inputs and workspaces, {} for kernels and \
             libraries",
            gb(needs.bytes()),
            gb(room.free),
            gb(room.total),
            gb(needs.state),
            gb(arena),
            needs.largest,
            gb(shared + own),
            gb(needs.overhead)
        )?;
        if room.free < room.total / 2 {
            write!(f, ". Others use more than half of the device (see `nvidia-smi`)")?;
        }
        match (rows, work) {
            (0, Work::Training) => write!(
                f,
                ". Not even a batch of one row fits: take a smaller model (model_config.n_embd, \
                            model_config.n_layer and the like), shorter captions (data_config.max_seq_length)"
            )?,
            (0, Work::Measuring) => write!(f, ". Not even a batch of one row fits")?,
            (0, Work::Captioning) => write!(f, ". Not even one picture fits")?,
            (&rows, Work::Captioning) => {
                write!(f, ". There is room for {}: name no more", count(rows, "picture"))?
            }
            (rows, _) if self.at_least => write!(f, ". A batch of {rows} rows fits")?,
            (&rows, _) => write!(f, ". The largest batch that fits has {}", count(rows, "row"))?,
        }
        for (i, remedy) in self.remedies.iter().enumerate() {
            let word = if i > 0 || *rows == 0 { "; or set" } else { ". Set" };
            write!(f, "{word} {remedy}")?;
        }
        match work {
            Work::Training => Ok(()),
            Work::Measuring => write!(f, ". The CPU has the host's memory: trainer_config.device=cpu"),
            Work::Captioning => write!(f, ". The CPU has the host's memory: --device cpu"),
        }
    }
}
