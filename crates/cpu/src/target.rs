//! What the passes may ask about this executor.

use crate::buffer::ALIGNMENT;
use crate::check::widened;
use crate::layout::MAX_RANK;
use crate::ops::{Kernel, kernel, kernel_for};
use ocelli_ir::executor::Target;
use ocelli_ir::{Op, TensorType, View};

/// Name in messages.
pub const NAME: &str = "cpu";

/// Asks the kernel of an op about a view.
fn takes(op: &Op, view: &View, ask: impl FnOnce(&dyn Kernel) -> bool) -> bool {
    view.is_contiguous() || (view.shape.len() <= MAX_RANK && kernel(op).is_some_and(ask))
}

/// The CPU's answers. They do not depend on the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTarget;

impl Target for CpuTarget {
    fn name(&self) -> &str {
        NAME
    }

    fn has_kernel(&self, op: &Op, inputs: &[TensorType]) -> bool {
        kernel_for(op, &widened(inputs)).is_some()
    }

    fn reads_view(&self, op: &Op, input: usize, view: &View) -> bool {
        takes(op, view, |k| k.reads(input, view))
    }

    fn writes_view(&self, op: &Op, output: usize, view: &View) -> bool {
        takes(op, view, |k| k.writes(output, view))
    }

    fn alignment(&self) -> usize {
        ALIGNMENT
    }
}
