//! Launches that may start while the one before them on their branch ends (programmatic dependent launch).
//!
//! A kernel of ours waits inside, before it touches memory (`enter` in the kernels' prelude), until all of the launch before it
//! is over. That one was in turn behind all that came before it, whether it waited inside or was started afterwards, as the
//! library's products are. So nothing else changes: what a branch waits for from the other one, it waits for before a launch.

use crate::lower::Call;
use crate::plan::{BRANCHES, Step};

/// Whether, and how early, launches start while the one before them ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Each after the one before.
    Off,
    /// As soon as the blocks of the one before have ended.
    Late,
    /// As soon as all blocks of the one before run.
    Early,
}

/// The environment's variable that chooses, to compare them: `off`, `late` or `early`.
const VARIABLE: &str = "OCELLI_CUDA_OVERLAP";

impl Overlap {
    /// What the environment asks for.
    pub fn from_environment() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Ok("off") => Self::Off,
            Ok("late") => Self::Late,
            _ => Self::Early,
        }
    }

    /// What the kernels' prelude is told.
    pub(crate) const fn defines(self) -> &'static str {
        match self {
            Self::Late => "#define LATE\n",
            Self::Off | Self::Early => "",
        }
    }
}

/// For each call of each step, whether it may start while the one before it on its branch ends: a kernel of ours, right behind
/// a kernel or a product. The driver orders the first of a branch, and what is behind a fill or behind another branch.
pub(crate) fn early(steps: &[Step]) -> Vec<Vec<bool>> {
    let mut behind_kernel = [false; BRANCHES];
    let step = |s: &Step| {
        let behind = &mut behind_kernel[s.branch];
        *behind &= s.after.is_empty();
        let call = |c: &Call| {
            let early = *behind && matches!(c, Call::Kernel(_));
            *behind = !matches!(c, Call::Zero(..));
            early
        };
        s.lowered.calls.iter().map(call).collect()
    };
    steps.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::{Arg, GemmCall, KernelCall, Lowered, Matrix};
    use ocelli_ir::DType;

    fn kernel() -> Call {
        let source = String::new();
        Call::Kernel(KernelCall { entry: "k", source, grid: [1; 3], block: 32, shared: 0, args: vec![] })
    }

    fn product() -> Call {
        let (arg, dtype) = (Arg::In(0, 0), DType::F32);
        let a = Matrix { arg, dtype, align: 256, row: 1, col: 1, batch: 0 };
        let (batch, m, n, k, bias, accumulate) = (1, 1, 1, 1, None, false);
        Call::Gemm(GemmCall { batch, m, n, k, a, b: a, d: a, bias, accumulate })
    }

    fn step(branch: usize, after: &[usize], calls: Vec<Call>) -> Step {
        let lowered = Lowered { calls, ..Lowered::default() };
        let (ins, outs, after) = (vec![], vec![], after.to_vec());
        Step { launch: 0, launches: 1, branch, after, lowered, ins, outs, kept: 0 }
    }

    #[test]
    fn only_a_kernel_right_behind_a_launch_of_its_branch_is_early() {
        let zero = || Call::Zero(Arg::Work(0), 4);
        let steps = [
            step(0, &[], vec![kernel(), kernel()]),
            step(1, &[], vec![kernel()]),
            step(0, &[], vec![product(), kernel()]),
            step(0, &[1], vec![kernel(), kernel()]),
            step(1, &[], vec![]),
            step(1, &[], vec![kernel(), zero(), kernel()]),
            // What it waits for comes before all its calls, also where it has none.
            step(1, &[3], vec![]),
            step(1, &[], vec![kernel(), kernel()]),
        ];
        let want: [&[bool]; 8] = [
            &[false, true],
            &[false],
            &[false, true],
            &[false, true],
            &[],
            &[true, false, false],
            &[],
            &[false, true],
        ];
        assert_eq!(early(&steps), want);
    }
}
