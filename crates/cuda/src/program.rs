//! A loaded plan: kernels and products in order, run launch by launch the first time, from then on as one recorded graph.
//!
//! The first run is what loads the library's kernels, which may fail while a graph is recorded and other threads use the GPU.

use crate::addresses::Addresses;
use crate::blas::WORKSPACE;
use crate::driver::{self, DeviceBuffer, Driven, DriverFault, Event, Function, Graph, Stream};
use crate::executor::{CudaOptions, Shared, lock};
use crate::narrow::{self, Goal};
use crate::overlap;
use crate::plan::{self, Own, Step};
use crate::ready::{Ready, prepare};
use crate::state::{CudaState, failed};
use crate::target::{NAME, footprint};
use ocelli_ir::executor::{ExecError, Input, LaunchTime, Program, State};
use ocelli_ir::plan::{Place, Plan};
use ocelli_ir::{StateSpec, View};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A call with its addresses.
#[derive(Debug)]
struct Bound {
    step: usize,
    call: usize,
    addresses: Vec<u64>,
    /// It may start while the one before it on its branch ends.
    early: bool,
}

/// What was bound: to which memory, and the graph once one was recorded.
#[derive(Debug)]
struct Binding {
    state: u64,
    generation: u64,
    calls: Vec<Bound>,
    graph: Option<Graph>,
}

/// A plan made ready to run on a GPU.
#[derive(Debug)]
pub struct CudaProgram {
    plan: Plan,
    steps: Vec<Step>,
    ready: Vec<Vec<Ready>>,
    own: Own,
    /// Where its inputs go, and the kernels that bring them.
    goals: Vec<Goal>,
    unpack: [Function; 2],
    memory: DeviceBuffer,
    /// Lists of addresses, one behind the other, and where each step's starts.
    tables: DeviceBuffer,
    table_starts: Vec<usize>,
    binding: Option<Binding>,
    /// All its calls ran, on some state.
    has_run: bool,
    fits: Option<Arc<StateSpec>>,
    shared: Arc<Shared>,
    id: u64,
    /// Its name, for errors that show later.
    name: Arc<str>,
}

impl CudaProgram {
    pub(crate) fn load(plan: Plan, shared: &Arc<Shared>) -> Result<Self, ExecError> {
        let (steps, own) = plan::steps(&plan, shared.machine)?;
        let ready = prepare(&plan, &steps, shared)?;
        let typed = own.inputs.iter().zip(&plan.inputs);
        let goals = typed.map(|(&start, (_, ty))| Goal { start, dtype: ty.dtype }).collect();
        let kernel = |entry| shared.function(narrow::SOURCE, entry, 0);
        let kernel = |entry| kernel(entry).map_err(|e| failed("the kernels of inputs", 0, &e));
        let unpack = [kernel(narrow::ENTRY)?, kernel(narrow::GATHER)?];
        let context = shared.stream.context();
        let (table_starts, table_bytes) = footprint::tables(&steps);
        let device =
            |what: &str, bytes| DeviceBuffer::new(context, bytes).map_err(|e| failed(what, bytes, &e));
        let memory = device("inputs", own.bytes)?;
        let tables = device("lists of addresses", table_bytes)?;
        lock(&shared.feed)
            .grow(&shared.stream, own.input_bytes)
            .map_err(|e| failed("a batch on its way to the device", own.input_bytes, &e))?;
        let id = {
            let mut scratch = lock(&shared.scratch);
            scratch.grow(&shared.stream, footprint::of(&plan, &steps, &own))?;
            scratch.loaded += 1;
            scratch.loaded
        };
        let shared = shared.clone();
        let (binding, fits, name) = (None, None, Arc::from(&*plan.name));
        Ok(Self {
            plan,
            steps,
            ready,
            own,
            goals,
            unpack,
            memory,
            tables,
            table_starts,
            binding,
            has_run: false,
            fits,
            shared,
            id,
            name,
        })
    }

    /// Number of kernels, products and fills of one run.
    pub fn calls(&self) -> usize {
        self.ready.iter().map(Vec::len).sum()
    }

    /// Gives every call its addresses on this state; where it has them and all calls ran before, records the graph.
    fn bind(&mut self, state: &CudaState) -> Result<(), ExecError> {
        let shared = self.shared.clone();
        let scratch = lock(&shared.scratch);
        let current = |b: &Binding| b.state == state.id && b.generation == scratch.generation;
        if self.binding.as_ref().is_some_and(current) {
            drop(scratch);
            return self.record();
        }
        let addresses = Addresses {
            arena: scratch.arena.address(),
            work: (scratch.work.address(), scratch.work_bytes),
            own: self.memory.address(),
            tables: (self.tables.address(), &self.table_starts),
            state,
        };
        let mut table = Vec::new();
        let mut calls = Vec::with_capacity(self.calls());
        let early = overlap::early(&self.steps);
        for (i, (step, ready)) in self.steps.iter().zip(&self.ready).enumerate() {
            for &(arg, count) in &step.lowered.table {
                table.extend([addresses.of(i, step, arg), count]);
            }
            for (call, ready) in ready.iter().enumerate() {
                let addresses = ready.args().into_iter().map(|arg| addresses.of(i, step, arg)).collect();
                calls.push(Bound { step: i, call, addresses, early: early[i][call] && shared.overlaps() });
            }
        }
        self.tables
            .write(&shared.stream, 0, bytemuck::cast_slice(&table))
            .map_err(|e| failed("lists of addresses", table.len() * 8, &e))?;
        self.binding = Some(Binding { state: state.id, generation: scratch.generation, calls, graph: None });
        Ok(())
    }

    /// Records the graph of what is bound, if graphs are wanted, all calls ran before, and there is none yet.
    fn record(&mut self) -> Result<(), ExecError> {
        let CudaOptions { cuda_graph, synchronous, .. } = self.shared.options;
        let Some(Binding { calls, graph: None, .. }) = &self.binding else { return Ok(()) };
        if !cuda_graph || synchronous || calls.is_empty() || !self.has_run {
            return Ok(());
        }
        let queue = || self.queue_branches(calls).map_err(Recording::Exec);
        let recorded = Graph::record(&self.shared.stream, queue).map_err(|e| match e {
            Recording::Exec(e) => e,
            Recording::Driver(e) => failed(&format!("program '{}' as a graph", self.plan.name), 0, &e),
        })?;
        if let Some(binding) = &mut self.binding {
            binding.graph = Some(recorded);
        }
        Ok(())
    }

    /// Queues all calls, each on its branch.
    fn queue_branches(&self, calls: &[Bound]) -> Result<(), ExecError> {
        let streams = [&*self.shared.stream, &self.shared.aside];
        let fault = |e: DriverFault| failed(&format!("program '{}'", self.plan.name), 0, &e);
        if self.steps.iter().all(|s| s.branch == 0) {
            return calls.iter().try_for_each(|bound| self.queue(bound, streams[0], bound.early));
        }
        let mark = |stream: &Stream| {
            let event = Event::new(stream.context())?;
            event.record(stream)?;
            Ok(event)
        };
        streams[1].wait(&mark(streams[0]).map_err(fault)?).map_err(fault)?;
        let awaited: HashSet<usize> = self.steps.iter().flat_map(|s| s.after.iter().copied()).collect();
        let mut ended: HashMap<usize, Event> = HashMap::new();
        let mut calls = calls.iter().peekable();
        for (i, step) in self.steps.iter().enumerate() {
            let stream = streams[step.branch];
            for event in step.after.iter().filter_map(|a| ended.get(a)) {
                stream.wait(event).map_err(fault)?;
            }
            while let Some(bound) = calls.next_if(|b| b.step == i) {
                self.queue(bound, stream, bound.early)?;
            }
            if awaited.contains(&i) {
                ended.insert(i, mark(stream).map_err(fault)?);
            }
        }
        streams[0].wait(&mark(streams[1]).map_err(fault)?).map_err(fault)
    }

    /// Queues a call, which may start early if it is behind the one that it was bound behind.
    fn queue(&self, bound: &Bound, stream: &Stream, early: bool) -> Result<(), ExecError> {
        let done = match &self.ready[bound.step][bound.call] {
            Ready::Kernel { function, grid, block, shared, .. } => {
                // SAFETY: the lowering made source and arguments together; `plan::steps` saw that operands lie inside the
                // arena, the state or the program's memory, all alive until the program or the state is dropped, which
                // waits for the device. Every kernel starts with `enter`; `overlaps` asked the GPU.
                unsafe { function.launch(stream, *grid, *block, *shared, &bound.addresses, early) }
                    .map_err(|e| e.to_string())
            }
            Ready::Product(product) => {
                let at = |i: usize| bound.addresses.get(i).copied().unwrap_or(0);
                let workspace =
                    self.shared.products.address() + (self.steps[bound.step].branch * WORKSPACE) as u64;
                // SAFETY: as above; each branch has a workspace of its own.
                unsafe { self.shared.blas()?.run(product, [at(0), at(1), at(2), at(3)], workspace, stream) }
            }
            Ready::Zero(_, bytes) => {
                // SAFETY: as above.
                unsafe { stream.fill(bound.addresses[0], 0, *bytes) }.map_err(|e| e.to_string())
            }
        };
        let waited = || stream.synchronize().map_err(|e| e.to_string());
        let done = if self.shared.options.synchronous { done.and_then(|()| waited()) } else { done };
        done.map_err(|message| {
            let launch = self.steps[bound.step].launch;
            let name = self.plan.launches.get(launch);
            let name = name.map_or("a copy of a result".into(), |l| format!("{} in '{}'", l.op, l.scope));
            let message = format!("program '{}', launch {launch} ({name}): {message}", self.plan.name);
            ExecError::Device { device: NAME.into(), message }
        })
    }

    /// The state must have the plan's slots, perhaps with more behind them.
    fn check_state(&mut self, spec: &Arc<StateSpec>) -> Result<(), ExecError> {
        let same = |a: &Arc<StateSpec>| Arc::ptr_eq(a, spec);
        if same(&self.plan.state) || self.fits.as_ref().is_some_and(same) {
            return Ok(());
        }
        self.plan.check_state(spec)?;
        self.fits = Some(spec.clone());
        Ok(())
    }

    /// Rows must be of this executor's stores.
    fn check_stores(&self, inputs: &[Input<'_>]) -> Result<(), ExecError> {
        let own = |given: &Input<'_>| match given {
            Input::Rows { .. } => {
                narrow::store_of(*given).is_some_and(|(store, _)| store.is_of(&self.shared))
            }
            _ => true,
        };
        let foreign = inputs.iter().position(|given| !own(given));
        foreign.map_or(Ok(()), |i| {
            let message = format!("input '{}': the store is another executor's", self.plan.inputs[i].0);
            Err(ExecError::misuse(&self.plan.name, message))
        })
    }

    /// All that comes before the first launch.
    fn prepare_run(&mut self, state: &mut dyn State, inputs: &[Input<'_>]) -> Result<(), ExecError> {
        self.plan.check_inputs(inputs)?;
        self.check_stores(inputs)?;
        let spec = state.spec().clone();
        self.check_state(&spec)?;
        let state = own_state(&self.plan, state)?;
        self.bind(state)?;
        driver::queued(&self.name);
        lock(&self.shared.feed)
            .hand(&self.shared.stream, &self.unpack, &self.memory, &self.goals, inputs)
            .map_err(|e| failed(&format!("inputs of program '{}'", self.plan.name), self.own.input_bytes, &e))
    }
}

/// What can go wrong while a graph is recorded.
enum Recording {
    Exec(ExecError),
    Driver(DriverFault),
}

impl From<DriverFault> for Recording {
    fn from(e: DriverFault) -> Self {
        Self::Driver(e)
    }
}

fn own_state<'a>(plan: &Plan, state: &'a mut dyn State) -> Result<&'a mut CudaState, ExecError> {
    state
        .as_any()
        .downcast_mut::<CudaState>()
        .ok_or_else(|| ExecError::misuse(&plan.name, "the state is another executor's"))
}

impl Program for CudaProgram {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn run(&mut self, state: &mut dyn State, inputs: &[Input<'_>]) -> Result<(), ExecError> {
        self.prepare_run(state, inputs)?;
        match &self.binding {
            // SAFETY: the memory that was bound is alive: the state is borrowed, the rest is this program's or shared.
            Some(Binding { graph: Some(graph), .. }) => unsafe { graph.launch(&self.shared.stream) }
                .map_err(|e| failed(&format!("program '{}'", self.plan.name), 0, &e))?,
            Some(binding) => self.queue_branches(&binding.calls)?,
            None => {}
        }
        self.has_run = true;
        lock(&self.shared.scratch).ran = self.id;
        Ok(())
    }

    fn run_timed(
        &mut self,
        state: &mut dyn State,
        inputs: &[Input<'_>],
    ) -> Result<Vec<LaunchTime>, ExecError> {
        self.prepare_run(state, inputs)?;
        let stream = &self.shared.stream;
        let fault = |e: DriverFault| failed("timing launches", 0, &e);
        let marks = (0..=self.steps.len()).map(|_| Event::new(stream.context())).collect::<Driven<Vec<_>>>();
        let marks = marks.map_err(fault)?;
        let calls = self.binding.as_ref().map_or(&[][..], |b| &b.calls[..]);
        marks[0].record(stream).map_err(fault)?;
        for (i, mark) in marks.iter().enumerate().skip(1) {
            calls.iter().filter(|b| b.step == i - 1).try_for_each(|b| self.queue(b, stream, false))?;
            mark.record(stream).map_err(fault)?;
        }
        stream.synchronize().map_err(fault)?;
        lock(&self.shared.scratch).ran = self.id;
        let time = |(step, pair): (&Step, &[Event])| {
            let ms = pair[1].since(&pair[0]).map_err(fault)?;
            Ok(LaunchTime { first: step.launch, count: step.launches, seconds: f64::from(ms) / 1e3 })
        };
        self.steps.iter().zip(marks.windows(2)).map(time).collect()
    }

    fn output(&self, index: usize) -> Result<Vec<u8>, ExecError> {
        let Some((name, operand)) = self.plan.outputs.get(index) else {
            return Err(ExecError::misuse(
                &self.plan.name,
                format!("there is no output {index}, only {}", self.plan.outputs.len()),
            ));
        };
        let scratch = lock(&self.shared.scratch);
        if scratch.ran != self.id {
            return Err(ExecError::misuse(
                &self.plan.name,
                "has not run since another program did: its outputs are gone",
            ));
        }
        let fault =
            |e: DriverFault| failed(&format!("output '{name}' of program '{}'", self.plan.name), 0, &e);
        let stream = &self.shared.stream;
        if let Some(at) = self.own.kept[index] {
            let mut bytes = vec![0; operand.ty().bytes()];
            self.memory.read(stream, at, &mut bytes).map_err(fault)?;
            return Ok(bytes);
        }
        let Place::Arena(at) = operand.place else {
            return Err(ExecError::misuse(&self.plan.name, "an output was not kept"));
        };
        let size = operand.dtype.size();
        let view = View { offset: 0, ..operand.view.clone() };
        let mut memory = vec![0; view.end() * size];
        scratch.arena.read(stream, at + operand.view.offset * size, &mut memory).map_err(fault)?;
        let mut bytes = Vec::with_capacity(operand.ty().bytes());
        view.for_each(|i| bytes.extend_from_slice(&memory[i * size..][..size]));
        Ok(bytes)
    }
}

impl Drop for CudaProgram {
    fn drop(&mut self) {
        // Nothing of it may be in use when its memory goes. A device that failed does not use it any more.
        let _ = self.shared.stream.synchronize();
    }
}
