//! The CPU executor: runs plans with vector instructions on all cores.
//!
//! Results are equal, bit for bit, for any number of threads (rule 13): work is cut by shapes alone, and partial
//! sums are combined in their order. Nothing is allocated while a program runs, but inside the matrix products.
//!
//! Map: `ops` has one kernel file for each op; [`CpuProgram`] runs them; `check` refuses bad plans; `mem` and
//! `buffer` hold all `unsafe`; `simd` has the arithmetic that kernels share.
#[cfg(target_endian = "big")]
compile_error!("dropout decisions and host tensors are laid out for little-endian machines");

mod arena;
mod buffer;
mod check;
mod cx;
mod launch;
mod layout;
mod mem;
mod ops;
mod program;
mod simd;
mod state;
mod target;
mod walk;

pub use program::CpuProgram;
pub use state::CpuState;
pub use target::CpuTarget;

use arena::Arena;
use ocelli_ir::StateSpec;
use ocelli_ir::executor::{ExecError, Executor, Program, State, Target};
use ocelli_ir::plan::Plan;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Why an executor cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CpuError {
    /// The threads could not be started.
    #[error("cpu: cannot start {threads} threads: {message}; ask for fewer")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        message: String,
    },
}

/// Runs plans on the CPU, with a thread pool of its own.
#[derive(Debug)]
pub struct CpuExecutor {
    target: CpuTarget,
    pool: Arc<ThreadPool>,
    arena: Arc<Mutex<Arena>>,
}

/// More threads than any machine has cores; starting them would only exhaust it.
const MAX_THREADS: usize = 1024;

impl CpuExecutor {
    /// An executor with so many threads (at most 1024), or as many as there are cores.
    ///
    /// # Errors
    /// If more are asked for, or the threads cannot be started.
    pub fn new(threads: Option<usize>) -> Result<Self, CpuError> {
        let available =
            || std::thread::available_parallelism().map_or(1, |n| usize::from(n).min(MAX_THREADS));
        let threads = threads.unwrap_or_else(available).max(1);
        let fail = |message: String| CpuError::Threads { threads, message };
        if threads > MAX_THREADS {
            return Err(fail(format!("at most {MAX_THREADS} are supported")));
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("ocelli-cpu-{i}"))
            .build()
            .map_err(|e| fail(e.to_string()))?;
        let arena = Arena::new(threads).ok_or_else(|| fail("out of memory".into()))?;
        Ok(Self { target: CpuTarget, pool: Arc::new(pool), arena: Arc::new(Mutex::new(arena)) })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Makes a plan ready to run, as [`Executor::load`], and returns the program with its own methods.
    ///
    /// # Errors
    /// As [`Executor::load`].
    pub fn load_program(&self, plan: Plan) -> Result<CpuProgram, ExecError> {
        CpuProgram::load(plan, &self.arena, &self.pool)
    }
}

impl Executor for CpuExecutor {
    fn target(&self) -> &dyn Target {
        &self.target
    }

    fn new_state(&self, spec: &Arc<StateSpec>, seed: u64) -> Result<Box<dyn State>, ExecError> {
        Ok(Box::new(self.pool.install(|| CpuState::new(spec, seed))?))
    }

    fn load(&self, plan: Plan) -> Result<Box<dyn Program>, ExecError> {
        Ok(Box::new(self.load_program(plan)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_any_machine_has_are_refused_at_once() {
        for threads in [MAX_THREADS + 1, usize::MAX] {
            let error = CpuExecutor::new(Some(threads)).unwrap_err().to_string();
            assert!(error.contains(&threads.to_string()) && error.contains("at most 1024"), "{error}");
        }
        assert_eq!(CpuExecutor::new(Some(3)).unwrap().threads(), 3);
    }
}
