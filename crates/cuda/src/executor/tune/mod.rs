//! Choices among ways to compute one thing, made by measuring them (`trainer_config.autotune`).
//!
//! Everything is tried on scratch copies before a program is bound or recorded (rule 9 of `ocelli_ir`), so that nothing of
//! a run changes. What was chosen is kept in a file; a second start measures nothing. A choice is a key, the names of the
//! ways, the best guess first, and a closure that queues one of them: the tuner knows nothing of what they are.

mod clock;
mod products;
mod store;

pub use products::{Products, settle};

use crate::driver::{DeviceBuffer, Stream};
use crate::executor::lock;
use clock::Queue;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::{Choice, Store};

/// Time that choosing for one program may take; what is left then gets the best guess.
const PATIENCE: Duration = Duration::from_millis(1800);
/// Bytes that operands in turn should not fit into: the cache of any GPU.
const CACHE: usize = 96 << 20;
/// Copies of operands at most.
const COPIES: usize = 4;
/// What scratch copies hold: bytes that make a small number in every type.
const FILL: u8 = 0x3c;

/// The choices of an executor.
#[derive(Debug)]
pub struct Tuner {
    store: Mutex<Store>,
    measured: AtomicUsize,
}

/// Something that can be computed in several ways.
pub struct Contest<'a> {
    /// All that decides which ways there are and how fast each is.
    pub key: String,
    /// Bytes of all operands.
    pub bytes: usize,
    /// The ways by name, the best guess first; at least one.
    pub ways: Vec<String>,
    /// Queues a way, by number, on operands that start at an address.
    #[allow(clippy::type_complexity)]
    pub queue: Box<dyn Fn(usize, u64) -> Result<(), String> + 'a>,
}

impl Tuner {
    /// Choices of a machine, whose words name GPU, driver and library, kept in `folder` if there is one.
    pub fn new(folder: Option<&Path>, machine: &str) -> Self {
        Self { store: Mutex::new(Store::open(folder, machine)), measured: AtomicUsize::new(0) }
    }

    /// The way that was chosen for a key.
    pub fn chosen(&self, key: &str) -> Option<String> {
        lock(&self.store).get(key).map(|c| c.way.clone())
    }

    /// Things measured since it was made.
    pub fn measured(&self) -> usize {
        self.measured.load(Ordering::Relaxed)
    }

    /// What stands for the choices made so far.
    pub fn mark(&self) -> String {
        lock(&self.store).mark()
    }

    /// True if the choices that a mark stands for are still made.
    pub fn holds(&self, mark: &str) -> bool {
        lock(&self.store).holds(mark)
    }

    /// Chooses, in this order while there is time, and keeps what was chosen.
    pub fn choose(&self, stream: &Stream, contests: &[Contest<'_>]) {
        let until = Instant::now() + PATIENCE;
        let bytes = contests.iter().map(|c| c.bytes * copies(c.bytes)).max().unwrap_or(0);
        // Without memory for copies nothing can be measured.
        let memory = scratch(stream, bytes);
        let one = |contest: &Contest<'_>| {
            let memory = memory.as_ref().filter(|_| Instant::now() < until);
            let found = memory.and_then(|memory| measure(stream, contest, memory));
            self.measured.fetch_add(usize::from(found.is_some()), Ordering::Relaxed);
            let (way, us) = found.map_or((0, None), |(way, us)| (way, Some(us)));
            Choice { key: contest.key.clone(), way: contest.ways[way].clone(), us }
        };
        let new: Vec<Choice> = contests.iter().filter(|c| !c.ways.is_empty()).map(one).collect();
        if !new.is_empty() {
            lock(&self.store).add(new);
        }
    }
}

/// Copies of operands of so many bytes.
fn copies(bytes: usize) -> usize {
    CACHE.div_ceil(bytes.max(1)).clamp(1, COPIES)
}

fn scratch(stream: &Stream, bytes: usize) -> Option<DeviceBuffer> {
    let memory = DeviceBuffer::new(stream.context(), bytes).ok()?;
    // SAFETY: the bytes are the buffer's, which is dropped only after the device was waited for.
    unsafe { stream.fill(memory.address(), FILL, bytes) }.ok()?;
    Some(memory)
}

fn measure(stream: &Stream, contest: &Contest<'_>, memory: &DeviceBuffer) -> Option<(usize, f64)> {
    let copies = copies(contest.bytes);
    let at = |copy: usize| memory.address() + (copy % copies * contest.bytes) as u64;
    let queue: &Queue<'_> = &|way, copy| (contest.queue)(way, at(copy));
    clock::fastest(stream, contest.ways.len(), queue)
}
