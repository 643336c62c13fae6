//! Several launches that become one: the optimiser's steps of all parameters with the casts behind them, the casts of weights.

use super::{Planned, Step, at_launch, spot, tensor};
use crate::lower::Tensor;
use crate::ops;
use ocelli_ir::executor::ExecError;
use ocelli_ir::ops::Adam;
use ocelli_ir::plan::{Launch, Operand, Place};
use ocelli_ir::{DType, Op, SlotKind, StateSpec};

/// How many launches from the first on are steps of one optimiser under the same scalars, each perhaps with the cast behind it
/// that keeps its weight rounded, all to one type: one launch makes them all.
pub(super) fn adam_run(launches: &[Launch], state: &StateSpec) -> usize {
    let Op::Adam(first) = &launches[0].op else { return 1 };
    let mut to = None;
    let same = |(i, l): &(usize, &Launch)| match &l.op {
        Op::Adam(op) => {
            op == first && l.inputs[4..].iter().zip(&launches[0].inputs[4..]).all(|(a, b)| a == b)
        }
        Op::Cast(_) => {
            let step = &launches[i - 1];
            // A step that is skipped does not write it: it must be what it would be already.
            let keeps = match (l.inputs[0].place, l.outputs[0].place) {
                (Place::State(from), Place::State(to)) => state.get(to).kind == SlotKind::Rounded(from),
                _ => false,
            };
            let behind = matches!(step.op, Op::Adam(_)) && step.outputs[0] == l.inputs[0];
            keeps && behind && *to.get_or_insert(l.outputs[0].dtype) == l.outputs[0].dtype
        }
        _ => false,
    };
    let on_branch = |(_, l): &(usize, &Launch)| l.branch == launches[0].branch;
    launches.iter().enumerate().take_while(on_branch).take_while(same).count()
}

pub(super) fn adams(at: Planned<'_>, first: usize, count: usize) -> Result<Step, ExecError> {
    let plan = at.0;
    let launches = &plan.launches[first..first + count];
    let Op::Adam(op) = &launches[0].op else {
        return Err(ExecError::misuse(&plan.name, "no optimiser step where one was found"));
    };
    let op: &Adam = op;
    let steps: Vec<&Launch> = launches.iter().filter(|l| matches!(l.op, Op::Adam(_))).collect();
    // What each step's weight is cast to, if it is.
    let cast = |i: usize| launches.get(i + 1).filter(|l| matches!(l.op, Op::Cast(_))).map(|l| &l.outputs[0]);
    let halves: Vec<Option<&Operand>> =
        (0..count).filter(|&i| matches!(launches[i].op, Op::Adam(_))).map(cast).collect();
    let spots = |operands: &mut dyn Iterator<Item = &Operand>| {
        operands
            .map(|o| spot(at, o))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|m| ExecError::misuse(&plan.name, m))
    };
    let scalars = &launches[0].inputs[4..];
    let ins = spots(&mut steps.iter().flat_map(|l| &l.inputs[..4]).chain(scalars))?;
    let made = steps.iter().flat_map(|l| &l.outputs);
    let outs = spots(&mut made.chain(halves.iter().copied().flatten()))?;
    let operands = steps.iter().flat_map(|l| l.inputs[..4].iter().chain(&l.outputs));
    let tensors: Vec<Tensor> = operands.chain(halves.iter().copied().flatten()).map(tensor).collect();
    if tensors.iter().any(|t| !t.view.is_contiguous()) {
        return Err(ExecError::misuse(&plan.name, format!("{}: a view with gaps", at_launch(plan, first))));
    }
    let aligned = tensors.iter().all(|t| t.align >= 16);
    let sizes: Vec<usize> = steps.iter().map(|l| l.inputs[0].view.shape.numel()).collect();
    let halves: Vec<Option<DType>> = halves.iter().map(|h| h.map(|o| o.dtype)).collect();
    let lowered = ops::many_adam(op, &sizes, &halves, aligned);
    Ok(Step { launch: first, launches: count, branch: 0, after: vec![], lowered, ins, outs, kept: 0 })
}

/// How many launches from the first on are casts between the same types, none of which reads what another makes.
pub(super) fn cast_run(launches: &[Launch]) -> usize {
    let types = |l: &Launch| matches!(l.op, Op::Cast(_)).then(|| (l.inputs[0].dtype, l.outputs[0].dtype));
    let Some(first) = types(&launches[0]) else { return 1 };
    let same = |l: &&Launch| {
        let weights =
            matches!(l.inputs[0].place, Place::State(_)) && matches!(l.outputs[0].place, Place::Arena(_));
        types(l) == Some(first)
            && weights
            && l.inputs[0].view.is_contiguous()
            && l.outputs[0].view.is_contiguous()
    };
    launches.iter().take_while(same).count()
}

pub(super) fn casts(at: Planned<'_>, first: usize, count: usize) -> Result<Step, ExecError> {
    let plan = at.0;
    let launches = &plan.launches[first..first + count];
    let spots = |pick: fn(&Launch) -> &Operand| {
        launches
            .iter()
            .map(|l| spot(at, pick(l)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|m| ExecError::misuse(&plan.name, m))
    };
    let (ins, outs) = (spots(|l| &l.inputs[0])?, spots(|l| &l.outputs[0])?);
    let types = [launches[0].inputs[0].dtype, launches[0].outputs[0].dtype];
    let aligned = launches.iter().flat_map(|l| [&l.inputs[0], &l.outputs[0]]).all(|o| tensor(o).align >= 16);
    let sizes: Vec<usize> = launches.iter().map(|l| l.inputs[0].view.shape.numel()).collect();
    let lowered = ops::many_casts(types, &sizes, aligned);
    Ok(Step { launch: first, launches: count, branch: 0, after: vec![], lowered, ins, outs, kept: 0 })
}
