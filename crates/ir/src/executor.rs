//! What a device must offer. `train` and `cli` know devices through these traits alone.

use crate::memory::{Footprint, Room};
use crate::plan::Plan;
use crate::reading::There;
use crate::{DType, Op, SlotId, SlotKind, StateSpec, TensorType, View};
use std::fmt::Debug;
use std::sync::Arc;
use thiserror::Error;

pub use crate::input::{HostBytes, HostMemory, Input, Store};
pub use crate::reading::Reading;

/// What an executor tells the passes about itself. Passes ask this, never a device by name.
pub trait Target: Send + Sync {
    /// A short name for messages: `cpu`.
    fn name(&self) -> &str;

    /// True if the executor has a kernel for this op at these types. Without one the op runs by its reference
    /// evaluation, slowly: `explain` names it, and a test counts such launches.
    fn has_kernel(&self, op: &Op, inputs: &[TensorType]) -> bool;

    /// True if the kernel of `op` reads this view as its input number `input` without a copy. Views without
    /// gaps are always read, and `contiguous` reads every view.
    fn reads_view(&self, op: &Op, input: usize, view: &View) -> bool;

    /// True if the kernel of `op` writes this view as its output number `output`. Views without gaps are
    /// always written.
    fn writes_view(&self, op: &Op, output: usize, view: &View) -> bool;

    /// The 16-bit type of mixed precision where none is named; none if 16 bits are no faster than 32.
    fn half(&self) -> Option<DType> {
        None
    }

    /// How many branches of launches may run side by side.
    fn branches(&self) -> usize {
        1
    }

    /// Offsets in the arena are multiples of this many bytes; a power of two.
    fn alignment(&self) -> usize;

    /// Device memory that a plan takes once it is loaded, beside its state.
    fn footprint(&self, plan: &Plan) -> Footprint {
        Footprint { arena: plan.arena_bytes, ..Footprint::default() }
    }

    /// Bytes of device memory that compiled kernels and libraries take beside plans, at most.
    fn overhead(&self) -> usize {
        0
    }
}

/// What memory grows with, which says what to make smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The model: weights, moments, sums of gradients.
    Model,
    /// The captions made side by side: their keys and values.
    Captions,
    /// The batch: what a program computes.
    Batch,
}

impl Need {
    /// That of a slot of the state.
    pub const fn of(kind: SlotKind) -> Self {
        if matches!(kind, SlotKind::Cache) { Self::Captions } else { Self::Model }
    }

    /// What to do if it cannot be had.
    const fn advice(self) -> &'static str {
        match self {
            Self::Model => "try a smaller model (model_config.n_embd, model_config.n_layer and the like)",
            Self::Captions => "try a smaller data_config.max_seq_length, or caption fewer pictures at once",
            Self::Batch => {
                "try a smaller trainer_config.train_batch_size, or where it evaluates trainer_config.eval_batch_size"
            }
        }
    }
}

/// Something that went wrong on a device.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExecError {
    /// Memory could not be had.
    #[error(
        "{device}: cannot allocate {bytes} bytes for {what}; {}", need.advice()
    )]
    OutOfMemory {
        /// Name of the device.
        device: String,
        /// What the memory was for.
        what: String,
        /// How much was asked for.
        bytes: usize,
        /// What it grows with.
        need: Need,
    },
    /// The device or its driver failed.
    #[error("{device}: {message}")]
    Device {
        /// Name of the device.
        device: String,
        /// What was done, and what the driver said.
        message: String,
    },
    /// The host gave or asked for the wrong thing.
    #[error("program '{program}': {message}")]
    Misuse {
        /// Name of the program.
        program: String,
        /// What does not fit.
        message: String,
    },
    /// The executor lacks something the plan needs.
    #[error("program '{program}': {op} cannot run on {device}: {message}")]
    Unsupported {
        /// Name of the program.
        program: String,
        /// Name of the op.
        op: String,
        /// Name of the device.
        device: String,
        /// What is missing.
        message: String,
    },
}

impl ExecError {
    /// The error for a host that does not fit the program.
    pub fn misuse(program: &str, message: impl Into<String>) -> Self {
        Self::Misuse { program: program.into(), message: message.into() }
    }
}

impl Plan {
    /// That `inputs` are as many, and each as large, as the plan takes.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_inputs(&self, inputs: &[Input<'_>]) -> Result<(), ExecError> {
        let (want, found) = (self.inputs.len(), inputs.len());
        if want != found {
            return Err(ExecError::misuse(&self.name, format!("takes {want} inputs, got {found}")));
        }
        for ((name, ty), input) in self.inputs.iter().zip(inputs) {
            let (want, found) = (ty.bytes(), input.size());
            if found != want {
                let message = format!("input '{name}' is {ty}, {want} bytes, got {found}");
                return Err(ExecError::misuse(&self.name, message));
            }
            if let Some(row) = input.lacking() {
                let message = format!("input '{name}': its store has no row {row}");
                return Err(ExecError::misuse(&self.name, message));
            }
        }
        Ok(())
    }

    /// That a state has the plan's slots, perhaps with more behind them.
    ///
    /// # Errors
    /// The first slot that it has not.
    pub fn check_state(&self, spec: &StateSpec) -> Result<(), ExecError> {
        let Some(slot) = self.state.first_missing(spec) else { return Ok(()) };
        let message = format!("the state has no slot '{}' {} where it should be", slot.name, slot.ty);
        Err(ExecError::misuse(&self.name, message))
    }
}

/// Parameters, moments, counters: one buffer a slot, at fixed addresses for the life of the state (rule 1).
pub trait State: Send + Debug {
    /// The slots.
    fn spec(&self) -> &Arc<StateSpec>;

    /// Copies a slot to the host: little-endian, row-major, `ty.bytes()` bytes.
    ///
    /// # Errors
    /// If the device fails.
    fn read(&self, slot: SlotId) -> Result<Vec<u8>, ExecError>;

    /// Begins to copy a slot to the host, as it is behind all that was run so far. What is run from here on neither waits
    /// for it nor changes what it reads.
    ///
    /// # Errors
    /// If the device fails.
    fn begin_read(&self, slot: SlotId) -> Result<Box<dyn Reading>, ExecError> {
        Ok(Box::new(There(self.read(slot)?)))
    }

    /// Overwrites a slot.
    ///
    /// # Errors
    /// If the number of bytes is not the slot's, or the device fails.
    fn write(&mut self, slot: SlotId, bytes: &[u8]) -> Result<(), ExecError>;

    /// For the executor that made it.
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}

/// How long launches took that the executor ran as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchTime {
    /// Index of the first in the plan.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Seconds on the device.
    pub seconds: f64,
}

/// A plan made ready to run.
pub trait Program: Send + Debug {
    /// The plan it runs.
    fn plan(&self) -> &Plan;

    /// Runs once. `inputs` are those of [`Plan::inputs`], in order.
    ///
    /// # Errors
    /// If an input has the wrong size, the state is another executor's, or the device fails.
    fn run(&mut self, state: &mut dyn State, inputs: &[Input<'_>]) -> Result<(), ExecError>;

    /// Runs once, as [`run`](Program::run), launch by launch, each with its time.
    ///
    /// # Errors
    /// As [`run`](Program::run).
    fn run_timed(
        &mut self,
        state: &mut dyn State,
        inputs: &[Input<'_>],
    ) -> Result<Vec<LaunchTime>, ExecError>;

    /// Copies an output of the last run to the host, until any other program has run.
    ///
    /// # Errors
    /// If there is no such output, or the device fails.
    fn output(&self, index: usize) -> Result<Vec<u8>, ExecError>;
}

/// A device that runs plans.
pub trait Executor: Send + Sync {
    /// What the passes may ask.
    fn target(&self) -> &dyn Target;

    /// The device's memory as it is now; none if what fits cannot be told from it, as where memory is the host's.
    ///
    /// # Errors
    /// If the device fails.
    fn room(&self) -> Result<Option<Room>, ExecError> {
        Ok(None)
    }

    /// Bytes of inputs that crossed a bus to the device so far; none if there is no bus.
    fn crossed(&self) -> Option<u64> {
        None
    }

    /// Host memory of `bytes` zeros that is best to give inputs in; none if there is not so much. May be called from any thread.
    fn host_memory(&self, bytes: usize) -> Option<HostBytes> {
        HostBytes::plain(bytes)
    }

    /// Device memory for `rows` rows of `row_bytes` bytes, which programs are given by their numbers ([`Input::Rows`]); none if the
    /// device has no memory of its own, or the rows are too short to gain by it.
    ///
    /// # Errors
    /// If there is not so much, or the device fails.
    fn store(&self, _rows: usize, _row_bytes: usize) -> Result<Option<Box<dyn Store>>, ExecError> {
        Ok(None)
    }

    /// What stands for the choices of kernels made so far by measuring (rule 9); none if nothing is chosen so.
    fn tuning(&self) -> Option<String> {
        None
    }

    /// True if the choices that `tuning`, of this executor or another, stands for are made here as well: then results are
    /// equal to the bit.
    fn tuned_as(&self, _tuning: &str) -> bool {
        false
    }

    /// A state with every slot at its start under `seed`.
    ///
    /// # Errors
    /// If memory cannot be had.
    fn new_state(&self, spec: &Arc<StateSpec>, seed: u64) -> Result<Box<dyn State>, ExecError>;

    /// Makes a plan ready to run. All programs of an executor share one arena.
    ///
    /// # Errors
    /// If the plan needs what the executor lacks, or memory cannot be had.
    fn load(&self, plan: Plan) -> Result<Box<dyn Program>, ExecError>;
}

/// Host types of elements.
pub trait Element: Copy + Default + Send + Sync + 'static {
    /// The dtype that stores it.
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for half::bf16 {
    const DTYPE: DType = DType::Bf16;
}
impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}
impl Element for u32 {
    const DTYPE: DType = DType::U32;
}
impl Element for u8 {
    const DTYPE: DType = DType::U8;
}
