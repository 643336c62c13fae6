//! What a running kernel may use: vector instructions, threads, scratch memory of its thread.

use crate::buffer::Buffer;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Fewer element operations than this run on one thread: waking another takes about as long.
const PARALLEL_WORK: usize = 24 * 1024;

/// The context of a run.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The best vector instructions of this machine.
    pub arch: Arch,
    /// Number of threads of the pool.
    pub threads: usize,
    /// Scratch memory, one per thread of the pool; large enough for every kernel of the plan.
    pub scratch: &'a [Mutex<Buffer>],
}

/// A closure to be compiled for each instruction set. pulp takes closures itself, but calls them by value, for
/// which the compiler makes a function of its own, out of reach of the instruction set.
struct Vectorized<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Vectorized<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

impl Cx<'_> {
    /// Runs `f` with the best vector instructions of this machine, if all that it calls is inlined: mark `f` and
    /// closures inside it `#[inline(always)]`, and write loops as loops.
    #[inline]
    pub fn simd<R>(&self, f: impl FnMut() -> R) -> R {
        self.arch.dispatch(Vectorized(f))
    }

    /// Calls `f(0..n)`, each once, in any order, on several threads if `work` element operations are worth it.
    /// Results must not depend on the order.
    pub fn par(&self, n: usize, work: usize, f: impl Fn(usize) + Sync + Send) {
        if self.threads < 2 || n < 2 || work < PARALLEL_WORK {
            (0..n).for_each(f);
        } else {
            (0..n).into_par_iter().with_max_len(1).for_each(f);
        }
    }

    /// Sets `out[i] = f(i)`, on several threads if `work` element operations are worth it.
    pub fn par_fill<T: Send>(&self, out: &mut [T], work: usize, f: impl Fn(usize) -> T + Sync + Send) {
        if self.threads < 2 || out.len() < 2 || work < PARALLEL_WORK {
            out.iter_mut().enumerate().for_each(|(i, o)| *o = f(i));
        } else {
            out.par_iter_mut().with_max_len(1).enumerate().for_each(|(i, o)| *o = f(i));
        }
    }

    /// Calls `f` with `n` floats of this thread's scratch memory; their contents are arbitrary.
    ///
    /// # Panics
    /// If the kernel asks for more than it announced in its `scratch`.
    pub fn scratch<R>(&self, n: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
        let mine = rayon::current_thread_index().unwrap_or(0).min(self.scratch.len() - 1);
        // A panic in a kernel poisons nothing: the contents are arbitrary anyway.
        let mut buffer = self.scratch[mine].lock().unwrap_or_else(PoisonError::into_inner);
        f(buffer.slice(n))
    }
}
