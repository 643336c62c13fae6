//! Calls with all that they need but addresses.

use crate::blas::Product;
use crate::driver::Function;
use crate::executor::Shared;
use crate::executor::tune::{self, Products};
use crate::lower::{Arg, Call};
use crate::narrow;
use crate::plan::Step;
use crate::target::NAME;
use ocelli_ir::executor::ExecError;
use ocelli_ir::plan::Plan;
use std::sync::Arc;

/// A call with all that it needs but addresses.
#[derive(Debug)]
pub enum Ready {
    /// A kernel of ours.
    Kernel {
        /// It.
        function: Function,
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: u32,
        /// Bytes of dynamic shared memory.
        shared: u32,
        /// Its arguments.
        args: Vec<Arg>,
    },
    /// A product of the library.
    Product(Box<Product>),
    /// Zero bytes.
    Zero(Arg, usize),
}

impl Ready {
    /// Its arguments, in the order in which it takes them.
    pub fn args(&self) -> Vec<Arg> {
        match self {
            Self::Kernel { args, .. } => args.clone(),
            Self::Product(p) => {
                [p.call.a.arg, p.call.b.arg, p.call.d.arg].into_iter().chain(p.call.bias).collect()
            }
            Self::Zero(arg, _) => vec![*arg],
        }
    }
}

/// Compiles the kernels and chooses the products.
///
/// # Errors
/// If a kernel does not compile, or the library cannot make a product.
pub fn prepare(plan: &Plan, steps: &[Step], shared: &Arc<Shared>) -> Result<Vec<Vec<Ready>>, ExecError> {
    shared.compile(steps.iter().flat_map(Step::sources).chain([narrow::SOURCE]))?;
    let products = steps.iter().flat_map(|s| &s.lowered.calls).any(|c| matches!(c, Call::Gemm(_)));
    let tuner = if products { shared.tuner()? } else { None };
    if let Some(tuner) = tuner {
        tune::settle(steps, shared, tuner)?;
    }
    let device = |i: usize, message: String| {
        let name = plan
            .launches
            .get(i)
            .map_or(String::new(), |l| format!(", launch {i} ({} in '{}')", l.op, l.scope));
        ExecError::Device {
            device: NAME.into(),
            message: format!("program '{}'{name}: {message}", plan.name),
        }
    };
    let mut known = None;
    let mut one = |step: &Step, call: &Call| match call {
        Call::Kernel(k) => {
            let function = shared
                .function(&k.source, k.entry, k.shared)
                .map_err(|e| device(step.launch, e.to_string()))?;
            Ok(Ready::Kernel {
                function,
                grid: k.grid,
                block: k.block,
                shared: k.shared,
                args: k.args.clone(),
            })
        }
        Call::Gemm(g) => {
            let products = match &mut known {
                Some(products) => products,
                none => none.insert(Products::new(shared.blas()?, shared.options.tf32, tuner)),
            };
            Ok(Ready::Product(Box::new(products.product(*g).map_err(|m| device(step.launch, m))?)))
        }
        Call::Zero(arg, bytes) => Ok(Ready::Zero(*arg, *bytes)),
    };
    steps.iter().map(|step| step.lowered.calls.iter().map(|call| one(step, call)).collect()).collect()
}
