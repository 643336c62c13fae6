//! The executor: a GPU with its stream, its kernels, its scratch memory.

pub mod tune;

use crate::blas::{self, Blas, WORKSPACE};
use crate::cache::{self, KernelCache};
use crate::driver::{DeviceBuffer, Driven, Function, Module, PinnedBuffer, Stream, synchronous};
use crate::feed::Feed;
use crate::gpu::{self, GpuInfo};
use crate::libraries::LibFault;
use crate::lower::Machine;
use crate::narrow;
use crate::nvrtc::NvrtcFault;
use crate::overlap::Overlap;
use crate::plan::BRANCHES;
use crate::program::CudaProgram;
use crate::state::{CudaState, failed};
use crate::store::CudaStore;
use crate::target::{CudaTarget, NAME};
use ocelli_ir::StateSpec;
use ocelli_ir::executor::{ExecError, Executor, HostBytes, Program, State, Store, Target};
use ocelli_ir::memory::{Footprint, Room};
use ocelli_ir::plan::Plan;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use tune::Tuner;

/// The kernels' common beginning.
pub const PRELUDE: &str = include_str!("kernels/prelude.cuh");

/// Switches of the executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaOptions {
    /// Which GPU.
    pub ordinal: i32,
    /// Products of f32 may round their operands to TF32.
    pub tf32: bool,
    /// A program is recorded once and replayed by one call.
    pub cuda_graph: bool,
    /// Launch by launch, each waited for, so that an error names its launch. Slow; for looking for an error.
    pub synchronous: bool,
    /// How early a launch may start, where GPU and driver can do it.
    pub overlap: Overlap,
    /// Choose among ways to compute a thing by measuring them.
    pub autotune: bool,
    /// The next batch crosses the bus while a program runs.
    pub prefetch: bool,
    /// Batches are handed over in page-locked memory.
    pub pinned_memory: bool,
    /// Folder of compiled kernels.
    pub cache: Option<PathBuf>,
    /// Folder of what was chosen by measuring.
    pub tuning: Option<PathBuf>,
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self {
            ordinal: 0,
            tf32: false,
            cuda_graph: true,
            synchronous: synchronous(),
            overlap: Overlap::from_environment(),
            autotune: false,
            prefetch: true,
            pinned_memory: true,
            cache: cache::folder("kernels"),
            tuning: cache::folder("tuning"),
        }
    }
}

/// Runs plans on a GPU.
#[derive(Debug)]
pub struct CudaExecutor {
    target: CudaTarget,
    shared: Arc<Shared>,
    states: AtomicU64,
    /// Opens the library of products beside all else that a start takes.
    opening: Option<JoinHandle<()>>,
}

/// What all programs of an executor share.
#[derive(Debug)]
pub struct Shared {
    pub(crate) info: GpuInfo,
    pub(crate) machine: Machine,
    pub(crate) options: CudaOptions,
    pub(crate) stream: Arc<Stream>,
    /// The second branch of programs.
    pub(crate) aside: Stream,
    pub(crate) products: DeviceBuffer,
    pub(crate) scratch: Mutex<Scratch>,
    pub(crate) feed: Mutex<Feed>,
    cache: KernelCache,
    modules: Mutex<HashMap<String, Arc<Module>>>,
    blas: OnceLock<Result<Blas, String>>,
    tuner: OnceLock<Tuner>,
}

/// Scratch memory, as large as the largest program needs; its addresses hold for one generation.
#[derive(Debug)]
pub struct Scratch {
    pub(crate) arena: DeviceBuffer,
    pub(crate) work: DeviceBuffer,
    /// Bytes of workspace of each branch.
    pub(crate) work_bytes: usize,
    pub(crate) generation: u64,
    /// Programs loaded so far.
    pub(crate) loaded: u64,
    /// The program that ran last.
    pub(crate) ran: u64,
}

impl Scratch {
    /// Makes room. Programs that were bound before are bound anew when they run next.
    pub(crate) fn grow(&mut self, stream: &Stream, room: Footprint) -> Result<(), ExecError> {
        self.work_bytes = self.work_bytes.max(room.work / BRANCHES);
        let (arena, work) = (room.arena, self.work_bytes * BRANCHES);
        for (buffer, bytes, what) in
            [(&mut self.arena, arena, "activations and gradients"), (&mut self.work, work, "partial sums")]
        {
            if bytes > buffer.size() {
                stream.synchronize().map_err(|e| failed(what, bytes, &e))?;
                // The old memory goes first: both together may be more than there is.
                *buffer = DeviceBuffer::new(stream.context(), 0).map_err(|e| failed(what, 0, &e))?;
                self.generation += 1;
                self.ran = 0;
                *buffer = DeviceBuffer::new(stream.context(), bytes).map_err(|e| failed(what, bytes, &e))?;
            }
        }
        Ok(())
    }
}

/// The scratch memory; a panic elsewhere leaves it as it is.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn device(message: impl ToString) -> ExecError {
    ExecError::Device { device: NAME.into(), message: message.to_string() }
}

impl Shared {
    /// Compiles the kernels that are not there yet.
    pub(crate) fn compile<'a>(&self, sources: impl Iterator<Item = &'a str>) -> Result<(), ExecError> {
        let mut modules = lock(&self.modules);
        let mut new: Vec<&str> = sources.filter(|s| !modules.contains_key(*s)).collect();
        new.sort_unstable();
        new.dedup();
        let defines = self.options.overlap.defines();
        let whole: Vec<String> = new.iter().map(|s| format!("{defines}{PRELUDE}\n{s}")).collect();
        for (source, cubin) in new.into_iter().zip(self.cache.all(&whole).map_err(device)?) {
            let module = Module::new(self.stream.context(), &cubin).map_err(device)?;
            modules.insert(source.to_string(), module);
        }
        Ok(())
    }

    /// A kernel that was compiled.
    pub(crate) fn function(&self, source: &str, entry: &str, shared: u32) -> Driven<Function> {
        let modules = lock(&self.modules);
        match modules.get(source) {
            Some(module) => Function::new(module, entry, shared),
            None => unreachable!("compiled before"),
        }
    }

    /// True if launches may start while the one before them ends.
    pub(crate) fn overlaps(&self) -> bool {
        let CudaOptions { overlap, synchronous, .. } = self.options;
        overlap != Overlap::Off && !synchronous && self.info.overlaps()
    }

    /// The library of products, opened once: that takes a third of a second.
    pub(crate) fn blas(&self) -> Result<&Blas, ExecError> {
        let opened = self.blas.get_or_init(|| {
            let _call = self.stream.context().bind().map_err(|e| e.to_string())?;
            Blas::new()
        });
        opened.as_ref().map_err(device)
    }

    /// The choices made by measuring, if they are; the library of products is opened for them, whose version counts.
    pub(crate) fn tuner(&self) -> Result<Option<&Tuner>, ExecError> {
        if !self.options.autotune {
            return Ok(None);
        }
        self.blas()?;
        let tuner = self.tuner.get_or_init(|| {
            let GpuInfo { name, driver, .. } = &self.info;
            let (arch, library) = (self.info.arch(), blas::version());
            let machine = format!("{name} {arch} driver {driver} cublaslt {library}");
            Tuner::new(self.options.tuning.as_deref(), &machine)
        });
        Ok(Some(tuner))
    }
}

/// Why an executor cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// There is no GPU to work with.
    #[error(transparent)]
    Gpu(#[from] gpu::GpuFault),
    /// There is no compiler.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcFault),
    /// The driver failed.
    #[error("{0}")]
    Driver(String),
}

impl CudaError {
    /// True if there is no driver at all: most machines have no GPU, and nothing is amiss there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Gpu(gpu::GpuFault::Library(LibFault::Missing { .. })))
    }
}

impl CudaExecutor {
    /// An executor on a GPU.
    ///
    /// # Errors
    /// If there is no GPU, driver or kernel compiler, or they do not work: what is missing and what to install.
    pub fn new(options: CudaOptions) -> Result<Self, CudaError> {
        let (context, info) = gpu::open(options.ordinal)?;
        let cache = KernelCache::new(&info.arch(), options.cache.clone())?;
        if let Some(why) = gpu::newer_than_driver("libnvrtc", cache.version()) {
            return Err(CudaError::Driver(why));
        }
        let told = |e: crate::driver::DriverFault| CudaError::Driver(format!("GPU {}: {e}", options.ordinal));
        let stream = Arc::new(Stream::new(&context).map_err(told)?);
        let empty = || DeviceBuffer::new(&context, 0).map_err(told);
        let scratch =
            Scratch { arena: empty()?, work: empty()?, work_bytes: 0, generation: 0, loaded: 0, ran: 0 };
        let products = DeviceBuffer::new(&context, WORKSPACE * BRANCHES).map_err(told)?;
        let aside = Stream::new(&context).map_err(told)?;
        let machine = Machine {
            processors: info.processors,
            shared: info.shared,
            tf32: options.tf32,
            wgmma: info.capability == (9, 0),
        };
        let target = CudaTarget::new(machine);
        let (modules, blas, tuner) = (Mutex::default(), OnceLock::new(), OnceLock::new());
        let scratch = Mutex::new(scratch);
        let feed = Feed::new(&context, options.pinned_memory, options.prefetch).map_err(told)?;
        let feed = Mutex::new(feed);
        let shared = Arc::new(Shared {
            info,
            machine,
            options,
            stream,
            aside,
            products,
            scratch,
            feed,
            cache,
            modules,
            blas,
            tuner,
        });
        let opened = shared.clone();
        let opening = std::thread::Builder::new().name("cublaslt".into());
        // What is amiss is told to who wants the first product.
        let opening = opening.spawn(move || drop(opened.blas())).ok();
        Ok(Self { target, shared, states: AtomicU64::new(0), opening })
    }

    /// The GPU.
    pub fn info(&self) -> &GpuInfo {
        &self.shared.info
    }

    /// Kernels compiled so far, those found on disk not counted.
    pub fn compiled(&self) -> usize {
        self.shared.cache.compiled()
    }

    /// Things measured so far to choose how they are computed, choices found on disk not counted.
    pub fn measured(&self) -> usize {
        self.shared.tuner.get().map_or(0, Tuner::measured)
    }

    /// Waits until all that was queued is done.
    ///
    /// # Errors
    /// If any of it failed.
    pub fn synchronize(&self) -> Result<(), ExecError> {
        self.shared.stream.synchronize().map_err(|e| failed("waiting for the device", 0, &e))
    }

    /// As [`Executor::load`], with the program's own type.
    ///
    /// # Errors
    /// As [`Executor::load`].
    pub fn load_program(&self, plan: Plan) -> Result<CudaProgram, ExecError> {
        CudaProgram::load(plan, &self.shared)
    }
}

impl Drop for CudaExecutor {
    fn drop(&mut self) {
        // A process must not end while a library starts.
        if let Some(opening) = self.opening.take() {
            let _ = opening.join();
        }
    }
}

impl Executor for CudaExecutor {
    fn target(&self) -> &dyn Target {
        &self.target
    }

    fn room(&self) -> Result<Option<Room>, ExecError> {
        let room = self.shared.stream.context().room().map_err(|e| failed("free memory", 0, &e))?;
        Ok(Some(room))
    }

    fn crossed(&self) -> Option<u64> {
        Some(lock(&self.shared.feed).crossed())
    }

    fn host_memory(&self, bytes: usize) -> Option<HostBytes> {
        let pinned = self.shared.options.pinned_memory;
        // Systems limit page-locked memory; a batch in other memory is only slower.
        let locked = pinned.then(|| PinnedBuffer::new(self.shared.stream.context(), bytes).ok()).flatten();
        locked.map(HostBytes::new).or_else(|| HostBytes::plain(bytes))
    }

    fn store(&self, rows: usize, row_bytes: usize) -> Result<Option<Box<dyn Store>>, ExecError> {
        if row_bytes < narrow::SHORTEST {
            return Ok(None);
        }
        Ok(Some(Box::new(CudaStore::new(&self.shared, rows, row_bytes)?)))
    }

    fn tuning(&self) -> Option<String> {
        self.shared.tuner.get().map(Tuner::mark)
    }

    fn tuned_as(&self, tuning: &str) -> bool {
        self.shared.tuner.get().is_some_and(|tuner| tuner.holds(tuning))
    }

    fn new_state(&self, spec: &Arc<StateSpec>, seed: u64) -> Result<Box<dyn State>, ExecError> {
        let id = self.states.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Box::new(CudaState::new(&self.shared.stream, spec, seed, id)?))
    }

    fn load(&self, plan: Plan) -> Result<Box<dyn Program>, ExecError> {
        Ok(Box::new(self.load_program(plan)?))
    }
}
