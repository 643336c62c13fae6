//! What the passes may ask about this executor.

pub mod footprint;

use crate::lower::{ALIGNMENT, Lowering, Machine, Tensor};
use crate::{ops, plan};
use ocelli_ir::executor::Target;
use ocelli_ir::memory::Footprint;
use ocelli_ir::plan::Plan;
use ocelli_ir::{DType, Op, TensorType, View};

/// Name in messages.
pub const NAME: &str = "cuda";

/// Code of kernels and of cuBLASLt, and what graphs take of the driver: a guess on the safe side.
const OVERHEAD: usize = 256 << 20;

/// A GPU's answers.
#[derive(Clone, Copy, Debug)]
pub struct CudaTarget {
    machine: Machine,
}

impl CudaTarget {
    /// For a GPU.
    pub const fn new(machine: Machine) -> Self {
        Self { machine }
    }
}

impl Target for CudaTarget {
    fn name(&self) -> &str {
        NAME
    }

    fn has_kernel(&self, op: &Op, inputs: &[TensorType]) -> bool {
        let types: Vec<&TensorType> = inputs.iter().collect();
        let Ok(outputs) = op.infer(&types) else { return false };
        // A state write has no output in a graph; in a plan it is the slot.
        let outputs = if let Op::StateWrite(w) = op { vec![w.ty.clone()] } else { outputs };
        let dense = |types: &[TensorType]| types.iter().map(Tensor::dense).collect();
        let cx =
            Lowering { ins: dense(inputs), outs: dense(&outputs), in_place: false, machine: self.machine };
        ops::lower(op, &cx).is_some()
    }

    fn reads_view(&self, op: &Op, input: usize, view: &View) -> bool {
        view.is_contiguous() || ops::reads(op, input, view)
    }

    fn writes_view(&self, op: &Op, output: usize, view: &View) -> bool {
        view.is_contiguous() || ops::writes(op, output, view)
    }

    fn half(&self) -> Option<DType> {
        Some(DType::Bf16)
    }

    fn branches(&self) -> usize {
        crate::plan::BRANCHES
    }

    fn alignment(&self) -> usize {
        ALIGNMENT
    }

    fn footprint(&self, plan: &Plan) -> Footprint {
        match plan::steps(plan, self.machine) {
            Ok((steps, own)) => footprint::of(plan, &steps, &own),
            // It cannot be loaded either, and loading says why.
            Err(_) => Footprint { arena: plan.arena_bytes, ..Footprint::default() },
        }
    }

    fn overhead(&self) -> usize {
        OVERHEAD
    }
}
