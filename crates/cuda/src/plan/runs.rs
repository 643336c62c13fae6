//! Several launches that become one: the optimiser's steps of all parameters, the casts of all weights.

use super::{Planned, Step, at_launch, spot, tensor};
use crate::lower::Tensor;
use crate::ops;
use ocelli_ir::Op;
use ocelli_ir::executor::ExecError;
use ocelli_ir::ops::Adam;
use ocelli_ir::plan::{Launch, Operand, Place};

/// How many launches from the first on are steps of one optimiser under the same scalars: one launch makes them all.
pub(super) fn adam_run(launches: &[Launch]) -> usize {
    let Op::Adam(first) = &launches[0].op else { return 1 };
    let same = |l: &&Launch| {
        l.branch == launches[0].branch
            && matches!(&l.op, Op::Adam(op) if op == first)
            && l.inputs[4..].iter().zip(&launches[0].inputs[4..]).all(|(a, b)| a == b)
    };
    launches.iter().take_while(same).count()
}

pub(super) fn adams(at: Planned<'_>, first: usize, count: usize) -> Result<Step, ExecError> {
    let plan = at.0;
    let launches = &plan.launches[first..first + count];
    let Op::Adam(op) = &launches[0].op else {
        return Err(ExecError::misuse(&plan.name, "no optimiser step where one was found"));
    };
    let op: &Adam = op;
    let spots = |operands: &mut dyn Iterator<Item = &Operand>| {
        operands
            .map(|o| spot(at, o))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|m| ExecError::misuse(&plan.name, m))
    };
    let scalars = &launches[0].inputs[4..];
    let ins = spots(&mut launches.iter().flat_map(|l| &l.inputs[..4]).chain(scalars))?;
    let outs = spots(&mut launches.iter().flat_map(|l| &l.outputs))?;
    let tensors: Vec<Tensor> =
        launches.iter().flat_map(|l| l.inputs[..4].iter().chain(&l.outputs)).map(tensor).collect();
    if tensors.iter().any(|t| !t.view.is_contiguous()) {
        return Err(ExecError::misuse(&plan.name, format!("{}: a view with gaps", at_launch(plan, first))));
    }
    let aligned = tensors.iter().all(|t| t.align >= 16);
    let sizes: Vec<usize> = launches.iter().map(|l| l.inputs[0].view.shape.numel()).collect();
    let lowered = ops::many_adam(op, &sizes, aligned);
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
