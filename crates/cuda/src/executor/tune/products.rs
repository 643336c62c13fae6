//! The library's products as something to choose among: it knows several ways to make each, and its guess at the fastest
//! is often not the fastest.

use super::{Contest, Tuner};
use crate::blas::{Blas, Product, Way};
use crate::executor::Shared;
use crate::lower::{ALIGNMENT, Call, GemmCall, Matrix};
use crate::plan::Step;
use crate::state::failed;
use ocelli_ir::executor::ExecError;
use std::collections::HashMap;

/// Ways that are tried for a product.
const WAYS: usize = 8;

/// Chooses for all products of a program for which nothing was chosen yet, those with the most work first.
///
/// # Errors
/// If the library cannot be opened.
pub fn settle(steps: &[Step], shared: &Shared, tuner: &Tuner) -> Result<(), ExecError> {
    let blas = shared.blas()?;
    let calls = steps.iter().flat_map(|s| &s.lowered.calls);
    let mut work: HashMap<String, (GemmCall, usize)> = HashMap::new();
    for call in calls {
        if let Call::Gemm(g) = call {
            let flops = g.batch * g.m * g.n * g.k;
            work.entry(key(g, shared.options.tf32)).or_insert((*g, 0)).1 += flops;
        }
    }
    let mut new: Vec<_> = work.into_iter().filter(|(key, _)| tuner.chosen(key).is_none()).collect();
    new.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| a.0.cmp(&b.0)));
    let contest = |(key, (call, _)): (String, (GemmCall, usize))| contest(key, call, blas, shared);
    let contests: Vec<Contest<'_>> = new.into_iter().filter_map(contest).collect();
    if contests.is_empty() {
        return Ok(());
    }
    // What was queued before would be in the times.
    shared.stream.synchronize().map_err(|e| failed("waiting for the device", 0, &e))?;
    tuner.choose(&shared.stream, &contests);
    Ok(())
}

/// Products of programs, each with the way that was chosen for it, or else with the one that the library thinks best.
/// What decides that is looked at once: a model's layers have the same products.
#[derive(Debug)]
pub struct Products<'a> {
    blas: &'a Blas,
    tf32: bool,
    tuner: Option<&'a Tuner>,
    known: HashMap<String, Way>,
}

impl<'a> Products<'a> {
    /// Of an executor, whose library is open.
    pub fn new(blas: &'a Blas, tf32: bool, tuner: Option<&'a Tuner>) -> Self {
        Self { blas, tf32, tuner, known: HashMap::new() }
    }

    /// How a product is made.
    ///
    /// # Errors
    /// If the library cannot make it.
    pub fn product(&mut self, call: GemmCall) -> Result<Product, String> {
        let key = key(&call, self.tf32);
        if let Some(&way) = self.known.get(&key) {
            return self.blas.known(call, self.tf32, way);
        }
        let product = match self.tuned(&key, call)? {
            Some(product) => product,
            None => self.blas.choose(call, self.tf32)?,
        };
        self.known.insert(key, product.way);
        Ok(product)
    }

    /// In the way that was chosen by measuring, if there is one that the library still takes.
    fn tuned(&self, key: &str, call: GemmCall) -> Result<Option<Product>, String> {
        let name = self.tuner.and_then(|tuner| tuner.chosen(key));
        let Some(way) = name.and_then(|name| Way::from_name(&name)) else { return Ok(None) };
        let product = self.blas.known(call, self.tf32, way)?;
        Ok(self.blas.takes(&product, &way).then_some(product))
    }
}

fn contest<'a>(key: String, call: GemmCall, blas: &'a Blas, shared: &'a Shared) -> Option<Contest<'a>> {
    let (product, ways) = blas.ways(call, shared.options.tf32, WAYS).ok()?;
    let lie = Lie::of(&call);
    let products = shared.products.address();
    let names = ways.iter().map(Way::name).collect();
    let queue = move |way: usize, at: u64| {
        let [a, b, d, bias] = lie.starts.map(|start| at + start as u64);
        // SAFETY: the operands lie side by side in the tuner's memory, which has `lie.bytes` for them and waits for the
        // device; no program runs meanwhile, so the workspace is free.
        unsafe { blas.run_by(&product, &ways[way], [a, b, d, bias], products, &shared.stream) }
    };
    Some(Contest { key, bytes: lie.bytes, ways: names, queue: Box::new(queue) })
}

/// Where the operands of a product lie in scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lie {
    /// Of `a`, `b`, `d`, bias.
    starts: [usize; 4],
    bytes: usize,
}

impl Lie {
    fn of(call: &GemmCall) -> Self {
        let GemmCall { batch, m, n, k, a, b, d, .. } = *call;
        let sizes = [extent(&a, m, k, batch), extent(&b, k, n, batch), extent(&d, m, n, batch), n * size(&d)];
        let (mut starts, mut bytes) = ([0; 4], 0);
        for (start, size) in starts.iter_mut().zip(sizes) {
            *start = bytes;
            bytes += size.next_multiple_of(ALIGNMENT);
        }
        Self { starts, bytes }
    }
}

const fn size(m: &Matrix) -> usize {
    m.dtype.size()
}

/// Bytes from the first to behind the last element.
fn extent(m: &Matrix, rows: usize, cols: usize, batch: usize) -> usize {
    let last = |n: usize| n.saturating_sub(1);
    (last(rows) * m.row + last(cols) * m.col + last(batch) * m.batch + 1) * size(m)
}

/// All that decides how fast a product is.
fn key(g: &GemmCall, tf32: bool) -> String {
    let matrix = |name: &str, m: &Matrix| {
        format!("{name} {} {}/{}/{} align {}", m.dtype, m.row, m.col, m.batch, m.align.min(ALIGNMENT))
    };
    let mut key = format!("product {}x{}x{}x{}", g.batch, g.m, g.n, g.k);
    for (name, m) in [("a", &g.a), ("b", &g.b), ("d", &g.d)] {
        key = format!("{key}, {}", matrix(name, m));
    }
    for (on, word) in [(g.bias.is_some(), "bias"), (g.accumulate, "added"), (tf32, "tf32")] {
        if on {
            key = format!("{key}, {word}");
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::Arg;
    use ocelli_ir::DType;

    fn call() -> GemmCall {
        let matrix =
            |i, row, col, batch, dtype| Matrix { arg: Arg::In(i, 0), dtype, align: 512, row, col, batch };
        GemmCall {
            batch: 2,
            m: 3,
            n: 5,
            k: 7,
            a: matrix(0, 7, 1, 21, DType::Bf16),
            b: matrix(1, 1, 8, 0, DType::Bf16),
            d: matrix(2, 6, 1, 18, DType::F32),
            bias: None,
            accumulate: false,
        }
    }

    #[test]
    fn operands_in_scratch_memory_do_not_overlap() {
        let lie = Lie::of(&call());
        // 42 elements of 2 bytes, 39 of 2, 35 of 4, and room for a bias.
        assert_eq!(lie, Lie { starts: [0, 256, 512, 768], bytes: 1024 });
    }

    #[test]
    fn all_that_decides_is_in_the_key() {
        let base = key(&call(), false);
        assert_eq!(
            base,
            "product 2x3x5x7, a bf16 7/1/21 align 256, b bf16 1/8/0 align 256, d f32 6/1/18 align 256"
        );
        let others = [
            key(&call(), true),
            key(&GemmCall { bias: Some(Arg::In(3, 0)), ..call() }, false),
            key(&GemmCall { accumulate: true, ..call() }, false),
            key(&GemmCall { a: Matrix { align: 16, ..call().a }, ..call() }, false),
            key(&GemmCall { n: 6, ..call() }, false),
        ];
        let different: std::collections::HashSet<&String> = others.iter().chain([&base]).collect();
        assert_eq!(different.len(), 6);
        // Where operands stand in a launch does not decide.
        let elsewhere = GemmCall { a: Matrix { arg: Arg::In(4, 512), ..call().a }, ..call() };
        assert_eq!(key(&elsewhere, false), base);
    }
}
