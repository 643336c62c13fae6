//! One state and the programs that work on it.
//!
//! All programs are functions of sizes; the engine compiles each size once, at its first use, and runs it by
//! feeding a batch. Nothing here knows a device: the executor does.

mod metrics;
mod setup;

use crate::memory::Planned;
use crate::program::{RING_ROWS, RunSlots, Size};
use ocelli_data::batch::{Batch, Memory};
use ocelli_ir::executor::{ExecError, Executor, Input, LaunchTime, Program, State};
use ocelli_ir::memory::{Footprint, Room};
use ocelli_ir::plan::{Launch, Plan};
use ocelli_ir::{SlotId, SlotKind, StateSpec};
use ocelli_models::Model;
use ocelli_passes::{CompileError, pipeline};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

pub use metrics::{Metrics, StepMetrics};
pub(crate) use setup::Kind;
pub use setup::Setup;

/// What can go wrong in the engine.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A program could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A program could not be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A program declared state that the others do not know: a defect.
    #[error("program '{0}' needs state that was not there when the state was made")]
    StateGrew(String),
    /// A model has a slot by the name of one of the run's: a defect.
    #[error("the state of a run cannot be made: {0}")]
    Slots(String),
}

impl From<ocelli_ir::GraphError> for EngineError {
    fn from(e: ocelli_ir::GraphError) -> Self {
        Self::Compile(e.into())
    }
}

/// Room for captioning: it decides the size of the cache of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captions {
    /// Pictures captioned side by side.
    pub side_by_side: usize,
    /// Positions of the longest caption, the picture's included.
    pub positions: usize,
}

/// A program of a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepProgram {
    /// Its name, such as `train[B=16,T=64]`.
    pub name: String,
    /// The hash of its plan.
    pub hash: u64,
    /// How often it runs in a step.
    pub runs: usize,
    /// Launches of one run.
    pub launches: usize,
    /// What it takes of the device beside the state.
    pub footprint: Footprint,
}

/// Memory of a device, as it stands with the programs that are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes of the state.
    pub state: usize,
    /// Bytes of the programs, by their plans.
    pub programs: Footprint,
    /// What the device itself says.
    pub room: Room,
}

/// What a kernel of a program took.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Its ops in words.
    pub ops: String,
    /// The module of the first.
    pub scope: String,
    /// Seconds on the device.
    pub seconds: f64,
    /// The launches of the plan that it makes: none if it ends what others began.
    pub launches: Vec<Launch>,
}

/// A model with its optimiser on a device.
#[derive(derive_more::Debug)]
pub struct Engine {
    #[debug(skip)]
    executor: Arc<dyn Executor>,
    setup: Setup,
    slots: RunSlots,
    spec: Arc<StateSpec>,
    state: Box<dyn State>,
    programs: HashMap<Kind, Box<dyn Program>>,
    /// Plans of programs that are not loaded yet.
    planned: HashMap<Kind, Plan>,
}

impl Engine {
    /// A model at its initial weights under `seed`. Without an optimiser it can only caption and evaluate.
    ///
    /// # Errors
    /// If the model cannot be built or the memory cannot be had.
    pub fn new(executor: Arc<dyn Executor>, setup: Setup, seed: u64) -> Result<Self, EngineError> {
        // Building one program of each kind names every slot; other sizes add none.
        let mut spec = StateSpec::default();
        let small = Size { batch: 1, text: 1 };
        let steps = if setup.optimizer.is_some() { setup.step(small) } else { vec![] };
        for kind in steps {
            setup.graph(kind, &mut spec, executor.target(), None)?;
        }
        let slots = setup.declare_rest(&mut spec, executor.target())?;
        let spec = Arc::new(spec);
        let state = executor.new_state(&spec, seed)?;
        let mut engine = {
            let (programs, planned) = Default::default();
            Self { executor, setup, slots, spec, state, programs, planned }
        };
        let seed = [seed as u32, (seed >> 32) as u32];
        engine.write(slots.seed, bytemuck::cast_slice(&seed))?;
        Ok(engine)
    }

    /// Takes over plans that were made of the same setup, to foresee what they take.
    pub fn adopt(&mut self, planned: Planned) {
        self.planned.extend(planned.0.into_iter().filter(|(_, plan)| plan.state == self.spec));
    }

    /// The model.
    pub fn model(&self) -> &dyn Model {
        &*self.setup.model
    }

    /// The slots of the state.
    pub fn spec(&self) -> &Arc<StateSpec> {
        &self.spec
    }

    /// Counters and settings of the run.
    pub fn slots(&self) -> RunSlots {
        self.slots
    }

    /// Pictures captioned side by side.
    pub fn caption_batch(&self) -> usize {
        self.setup.captions.side_by_side
    }

    /// Longest caption in tokens.
    pub fn caption_limit(&self) -> usize {
        self.setup.positions() - 1
    }

    /// Sets the learning rate before its schedule.
    ///
    /// # Errors
    /// If the device fails.
    pub fn set_lr(&mut self, lr: f64) -> Result<(), EngineError> {
        self.write(self.slots.lr, &(lr as f32).to_le_bytes())
    }

    /// Runs of the optimiser so far, those that were no step included.
    ///
    /// # Errors
    /// If the device fails.
    pub fn attempts(&self) -> Result<u64, EngineError> {
        let bytes = self.read(self.slots.attempts)?;
        Ok(u64::from(bytemuck::pod_read_unaligned::<u32>(&bytes)))
    }

    /// Copies a slot to the host.
    ///
    /// # Errors
    /// If the device fails.
    pub fn read(&self, slot: SlotId) -> Result<Vec<u8>, EngineError> {
        Ok(self.state.read(slot)?)
    }

    /// Overwrites a slot.
    ///
    /// # Errors
    /// If the size is not the slot's or the device fails.
    pub fn write(&mut self, slot: SlotId, bytes: &[u8]) -> Result<(), EngineError> {
        Ok(self.state.write(slot, bytes)?)
    }

    /// Trains on a batch. With gradients accumulated over several, weights change only when `ends_step` says that it
    /// is the last one of a step.
    ///
    /// # Errors
    /// If the program cannot be compiled or run.
    pub fn train(&mut self, batch: &Batch, ends_step: bool) -> Result<(), EngineError> {
        let size = size_of(batch);
        if !self.setup.accumulates() {
            return self.run(Kind::Train(size), &inputs_of(batch)).map(|_| ());
        }
        self.run(Kind::Accumulate(size), &inputs_of(batch))?;
        if ends_step {
            self.run(Kind::Apply, &[])?;
        }
        Ok(())
    }

    /// The programs of a step over batches of a size, in their order.
    ///
    /// # Errors
    /// If one cannot be compiled.
    pub fn step_programs(&mut self, size: Size) -> Result<Vec<StepProgram>, EngineError> {
        let batches = self.setup.optimizer.as_ref().map_or(1, |o| o.batches);
        let mut all = Vec::new();
        for kind in self.setup.step(size) {
            self.load(kind)?;
            let plan = self.programs[&kind].plan();
            let runs = if kind == Kind::Apply { 1 } else { batches };
            let (launches, footprint) = (plan.launches.len(), self.executor.target().footprint(plan));
            all.push(StepProgram { name: plan.name.clone(), hash: plan.hash(), runs, launches, footprint });
        }
        Ok(all)
    }

    /// What stands for the kernels that were chosen by measuring, if any were.
    pub fn tuning(&self) -> Option<String> {
        self.executor.tuning()
    }

    /// Bytes of inputs that crossed a bus to the device so far; none if there is no bus.
    pub fn crossed(&self) -> Option<u64> {
        self.executor.crossed()
    }

    /// Host memory that pictures of batches are best put in.
    pub fn memory(&self) -> Memory {
        host_memory(&self.executor)
    }

    /// The device's memory, where it has one of its own.
    ///
    /// # Errors
    /// If the device fails.
    pub fn device_memory(&self) -> Result<Option<DeviceMemory>, EngineError> {
        let Some(room) = self.executor.room()? else { return Ok(None) };
        let target = self.executor.target();
        let loaded = self.programs.values().map(|program| target.footprint(program.plan()));
        let programs = loaded.fold(Footprint::default(), Footprint::beside);
        Ok(Some(DeviceMemory { state: self.spec.bytes(|_| true), programs, room }))
    }

    /// Takes the step of [`train`](Self::train) on one batch launch by launch: of each of its programs, in the order of
    /// [`step_programs`](Self::step_programs), for each kernel its ops, the module of the first, and seconds.
    ///
    /// # Errors
    /// If a program cannot be compiled or run.
    pub fn time_launches(&mut self, batch: &Batch) -> Result<Vec<Vec<Timed>>, EngineError> {
        let inputs = inputs_of(batch);
        let kinds = self.setup.step(size_of(batch));
        kinds
            .into_iter()
            .map(|kind| self.timed(kind, if kind == Kind::Apply { &[] } else { &inputs }))
            .collect()
    }

    fn timed(&mut self, kind: Kind, inputs: &[Input<'_>]) -> Result<Vec<Timed>, EngineError> {
        self.load(kind)?;
        let Some(program) = self.programs.get_mut(&kind) else { unreachable!("loaded just now") };
        let times = program.run_timed(&mut *self.state, inputs)?;
        let launches = &program.plan().launches;
        let line = |t: &LaunchTime| {
            let first = launches.get(t.first)?;
            let ops = match t.count {
                0 => format!("behind {}", first.op),
                1 => first.op.to_string(),
                n => format!("{n} x {}", first.op),
            };
            let launches = launches[t.first..t.first + t.count].to_vec();
            Some(Timed { ops, scope: first.scope.to_string(), seconds: t.seconds, launches })
        };
        Ok(times.iter().filter_map(line).collect())
    }

    /// Gives up the last `batches` batches, whose step has not ended: nothing is left of them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn forget(&mut self, batches: u32) -> Result<(), EngineError> {
        let spec = self.spec.clone();
        for (id, slot) in spec.iter().filter(|(_, s)| s.kind == SlotKind::Accumulator) {
            self.write(id, &vec![0; slot.ty.bytes()])?;
        }
        let counted: u32 = bytemuck::pod_read_unaligned(&self.read(self.slots.batches)?);
        self.write(self.slots.batches, &counted.wrapping_sub(batches).to_le_bytes())
    }

    /// Summed loss and weight of a batch, dropout off.
    ///
    /// # Errors
    /// If the program cannot be compiled or run.
    pub fn evaluate(&mut self, batch: &Batch) -> Result<(f64, f64), EngineError> {
        let program = self.run(Kind::Evaluate(size_of(batch)), &inputs_of(batch))?;
        let scalar = |i: usize| Ok::<_, EngineError>(floats(&program.output(i)?)[0]);
        Ok((f64::from(scalar(0)?), f64::from(scalar(1)?)))
    }

    /// Reads pictures u8 `[B, S, S, 3]` and a prompt of `len` tokens in u32 `[B, T]`; logits `[B, vocab]` of the
    /// token behind the prompt.
    ///
    /// # Errors
    /// If the program cannot be compiled or run.
    pub fn prefill(&mut self, images: &[u8], tokens: &[u32], len: usize) -> Result<Vec<f32>, EngineError> {
        let (batch, text) = (self.caption_batch(), tokens.len() / self.caption_batch());
        let last: Vec<u32> = (0..batch).map(|b| (b * (text + 1) + len) as u32).collect();
        let inputs = [Input::Bytes(images), words(tokens), words(&last)];
        let program = self.run(Kind::Prefill(Size { batch, text }), &inputs)?;
        Ok(floats(&program.output(0)?))
    }

    /// Continues by one token for each picture, at position `at` (the picture has position 0); logits
    /// `[B, vocab]` of the token behind it.
    ///
    /// # Errors
    /// If the program cannot be compiled or run.
    pub fn decode(&mut self, tokens: &[u32], at: usize) -> Result<Vec<f32>, EngineError> {
        let at = (at as u32).to_le_bytes();
        let program = self.run(Kind::Decode, &[words(tokens), Input::Bytes(&at)])?;
        Ok(floats(&program.output(0)?))
    }

    /// Metrics of the runs of the optimiser behind the first `from`, up to number `to`, which has been queued. At most
    /// [`RING_ROWS`] are kept; older ones are gone.
    ///
    /// # Errors
    /// If the device fails.
    pub fn metrics(&self, from: u64, to: u64) -> Result<Vec<StepMetrics>, EngineError> {
        self.begin_metrics(from, to)?.take()
    }

    /// As [`metrics`](Self::metrics), without waiting for them: they are on their way.
    ///
    /// # Errors
    /// If the device fails.
    pub fn begin_metrics(&self, from: u64, to: u64) -> Result<Metrics, EngineError> {
        let from = from.max(to.saturating_sub(RING_ROWS as u64));
        Ok(Metrics { ring: self.state.begin_read(self.slots.ring)?, from, to })
    }

    /// One line about the training step on batches of a size: its plan's hash, work and memory.
    ///
    /// # Errors
    /// If it cannot be compiled.
    pub fn describe_step(&mut self, size: Size) -> Result<String, EngineError> {
        let kind = if self.setup.accumulates() { Kind::Accumulate(size) } else { Kind::Train(size) };
        self.load(kind)?;
        let plan = self.programs[&kind].plan();
        let (flops, _) = plan.cost();
        let mb = |bytes: usize| bytes as f64 / 1e6;
        let weights = self.spec.bytes(|kind| kind == SlotKind::Parameter);
        let batches = self.setup.optimizer.as_ref().map_or(1, |o| o.batches);
        let per = if batches > 1 { format!("batch, {batches} batches a step") } else { "step".into() };
        let apply = match self.setup.accumulates() {
            true => {
                self.load(Kind::Apply)?;
                let plan = self.programs[&Kind::Apply].plan();
                format!("; plan {} {:016x}: {} launches a step", plan.name, plan.hash(), plan.launches.len())
            }
            false => String::new(),
        };
        let plan = self.programs[&kind].plan();
        Ok(format!(
            "plan {} {:016x}: {} launches, {:.2} GFLOP a {per}; memory: {:.1} MB weights, {:.1} MB state in all, \
             {:.1} MB scratch{apply}",
            plan.name,
            plan.hash(),
            plan.launches.len(),
            flops as f64 / 1e9,
            mb(weights),
            mb(self.spec.bytes(|_| true)),
            mb(plan.arena_bytes)
        ))
    }

    fn run(&mut self, kind: Kind, inputs: &[Input<'_>]) -> Result<&dyn Program, EngineError> {
        self.load(kind)?;
        match self.programs.get_mut(&kind) {
            Some(program) => {
                program.run(&mut *self.state, inputs)?;
                Ok(&**program)
            }
            None => unreachable!("loaded just now"),
        }
    }

    /// Compiles a program unless it is there.
    fn load(&mut self, kind: Kind) -> Result<(), EngineError> {
        if self.programs.contains_key(&kind) {
            return Ok(());
        }
        if let Some(plan) = self.planned.remove(&kind) {
            self.programs.insert(kind, self.executor.load(plan)?);
            return Ok(());
        }
        let mut spec = (*self.spec).clone();
        let (name, graph) = self.setup.graph(kind, &mut spec, self.executor.target(), None)?;
        if spec != *self.spec {
            return Err(EngineError::StateGrew(name));
        }
        let plan = pipeline::plan(&name, &graph, &self.spec, self.executor.target())?;
        self.programs.insert(kind, self.executor.load(plan)?);
        Ok(())
    }
}

/// Host memory that is best to give an executor inputs in.
pub(crate) fn host_memory(executor: &Arc<dyn Executor>) -> Memory {
    let executor = executor.clone();
    Arc::new(move |bytes| executor.host_memory(bytes))
}

fn size_of(batch: &Batch) -> Size {
    Size { batch: batch.rows, text: batch.text_len }
}

/// The inputs of a training or evaluation program, in the order of [`program::Inputs`].
fn inputs_of(batch: &Batch) -> [Input<'_>; 5] {
    [
        Input::Shared(&batch.images),
        words(&batch.tokens),
        words(&batch.targets),
        words(&batch.weights),
        words(&batch.sample_index),
    ]
}

fn words<T: bytemuck::NoUninit>(of: &[T]) -> Input<'_> {
    Input::Bytes(bytemuck::cast_slice(of))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(bytes)
}
