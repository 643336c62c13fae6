//! A plan's launches, lowered: calls whose operands are places, still without addresses.

mod runs;

use crate::late::{Bytes, Late};
use crate::lower::{ALIGNMENT, Arg, Call, Lowered, Lowering, Machine, Tensor, align_at};
use crate::ops;
use crate::target::NAME;
use ocelli_ir::executor::ExecError;
use ocelli_ir::ops::Contiguous;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::{Op, SlotId, TensorType, View};
use runs::{adam_run, adams, cast_run, casts};

/// The memory that an operand lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Scratch memory.
    Arena,
    /// A state slot.
    State(SlotId),
    /// The program's own memory: inputs, and copies of results.
    Own,
}

/// Where an operand's first element is, before anything has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The memory.
    pub home: Home,
    /// Bytes from its start.
    pub at: usize,
}

/// Branches that run side by side.
pub const BRANCHES: usize = 2;

/// A lowered launch, or several launches that became one.
#[derive(Clone, Debug)]
pub struct Step {
    /// First of the plan's launches that it computes.
    pub launch: usize,
    /// How many.
    pub launches: usize,
    /// The branch it runs on.
    pub branch: usize,
    /// Steps of the other branch that it waits for.
    pub after: Vec<usize>,
    /// What it becomes.
    pub lowered: Lowered,
    /// Operands.
    pub ins: Vec<Spot>,
    /// Results.
    pub outs: Vec<Spot>,
    /// Where in the program's own memory it keeps what late sums are made of.
    pub kept: usize,
}

/// A program's own memory: what the host gives, and copies of results that lie where a later write could reach them.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// Where each input starts.
    pub inputs: Vec<usize>,
    /// Bytes of all inputs.
    pub input_bytes: usize,
    /// Where the copy of each output starts, for those that have one.
    pub kept: Vec<Option<usize>>,
    /// Bytes in all.
    pub bytes: usize,
}

/// Lowers all launches of a plan, checks their operands, and adds copies of results that do not lie in the arena.
///
/// # Errors
/// If a launch has no kernel, or an operand does not lie inside its place.
pub fn steps(plan: &Plan, machine: Machine) -> Result<(Vec<Step>, Own), ExecError> {
    let mut own = own(plan);
    let mut late = Late::default();
    let mut kept = own.bytes;
    let mut steps: Vec<Step> = Vec::with_capacity(plan.launches.len());
    // The step of each launch.
    let mut at: Vec<usize> = Vec::with_capacity(plan.launches.len());
    let mut i = 0;
    while i < plan.launches.len() {
        let rest = &plan.launches[i..];
        let count = adam_run(rest, &plan.state).max(cast_run(rest));
        let step = match rest[0].op {
            Op::Adam(_) if count > 1 => adams((plan, &own), i, count)?,
            Op::Cast(_) if count > 1 => casts((plan, &own), i, count)?,
            _ => single((plan, &own), i, machine)?,
        };
        let branch = rest[0].branch.min(BRANCHES - 1);
        let touched = touched((plan, &own), &rest[..count])
            .map_err(|m| ExecError::misuse(&plan.name, format!("{}: {m}", at_launch(plan, i))))?;
        let sums = late.before(&touched, branch, &steps);
        steps.extend(sums);
        at.extend(std::iter::repeat_n(steps.len(), count));
        let waits = rest[..count].iter().flat_map(|l| &l.after).filter_map(|&l| at.get(l).copied());
        let mut after: Vec<usize> = waits.filter(|&s| s < steps.len()).collect();
        after.extend(late.made_for(&touched, branch, &steps));
        let bytes = step.lowered.kept.next_multiple_of(ALIGNMENT);
        steps.push(Step { branch, after, kept, ..step });
        kept += bytes;
        late.leave(steps.len() - 1, &steps[steps.len() - 1]);
        i += count;
    }
    let sums = late.make(0, &steps);
    steps.extend(sums);
    for ((name, operand), kept) in plan.outputs.iter().zip(&own.kept) {
        spot((plan, &own), operand)
            .map_err(|m| ExecError::misuse(&plan.name, format!("output '{name}': {m}")))?;
        if kept.is_some() {
            let op = Op::Contiguous(Contiguous);
            let out = Tensor::dense(&operand.ty());
            let cx = Lowering { ins: vec![tensor(operand)], outs: vec![out], in_place: false, machine };
            let lowered = ops::lower(&op, &cx)
                .ok_or_else(|| ExecError::misuse(&plan.name, format!("output '{name}' cannot be kept")))?;
            let ins = vec![spot((plan, &own), operand).map_err(|m| ExecError::misuse(&plan.name, m))?];
            let outs = vec![Spot { home: Home::Own, at: kept.unwrap_or(0) }];
            steps.push(Step {
                launch: plan.launches.len(),
                launches: 0,
                branch: 0,
                after: vec![],
                lowered,
                ins,
                outs,
                kept: 0,
            });
        }
    }
    own.bytes = kept;
    Ok((steps, own))
}

/// All bytes that launches read or write.
fn touched(at: Planned<'_>, launches: &[Launch]) -> Result<Vec<Bytes>, String> {
    let operands = launches.iter().flat_map(|l| l.inputs.iter().chain(&l.outputs));
    let bytes = |o: &Operand| {
        let start = spot(at, o)?;
        let first = o.view.offset * o.dtype.size();
        Ok((start.home, start.at..start.at + o.end_bytes().saturating_sub(first).max(1)))
    };
    operands.map(bytes).collect()
}

fn own(plan: &Plan) -> Own {
    let mut own = Own::default();
    let mut take = |bytes: usize| {
        let at = own.bytes;
        own.bytes = (at + bytes).next_multiple_of(ALIGNMENT);
        at
    };
    let inputs: Vec<usize> = plan.inputs.iter().map(|(_, ty)| take(ty.bytes())).collect();
    let input_bytes = take(0);
    let kept =
        plan.outputs.iter().map(|(_, o)| (!matches!(o.place, Place::Arena(_))).then(|| take(o.ty().bytes())));
    own.kept = kept.collect();
    Own { inputs, input_bytes, ..own }
}

fn at_launch(plan: &Plan, i: usize) -> String {
    let l = &plan.launches[i];
    format!("launch {i} ({} in '{}')", l.op, l.scope)
}

fn single(at: Planned<'_>, i: usize, machine: Machine) -> Result<Step, ExecError> {
    let plan = at.0;
    let l = &plan.launches[i];
    let spots = |operands: &[Operand]| {
        operands
            .iter()
            .map(|o| spot(at, o))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|m| ExecError::misuse(&plan.name, format!("{}: {m}", at_launch(plan, i))))
    };
    let (ins, outs) = (spots(&l.inputs)?, spots(&l.outputs)?);
    let pairs = l.op.in_place();
    let in_place = !pairs.is_empty() && pairs.iter().all(|&(o, i)| outs[o] == ins[i]);
    let tensors = |operands: &[Operand]| operands.iter().map(tensor).collect();
    let cx = Lowering { ins: tensors(&l.inputs), outs: tensors(&l.outputs), in_place, machine };
    let views =
        l.inputs.iter().enumerate().all(|(k, o)| o.view.is_contiguous() || ops::reads(&l.op, k, &o.view))
            && l.outputs
                .iter()
                .enumerate()
                .all(|(k, o)| o.view.is_contiguous() || ops::writes(&l.op, k, &o.view));
    let lowered = ops::lower(&l.op, &cx).filter(|_| views).ok_or_else(|| {
        let types: Vec<String> = l.inputs.iter().map(|o| o.ty().to_string()).collect();
        ExecError::Unsupported {
            program: plan.name.clone(),
            op: at_launch(plan, i),
            device: NAME.into(),
            message: format!("no kernel for {}", types.join(", ")),
        }
    })?;
    Ok(Step { launch: i, launches: 1, branch: 0, after: vec![], lowered, ins, outs, kept: 0 })
}

fn tensor(o: &Operand) -> Tensor {
    let start = if let Place::Arena(at) = o.place { at } else { 0 };
    let bytes = start + o.view.offset * o.dtype.size();
    Tensor { dtype: o.dtype, view: o.view.clone(), align: align_at(ALIGNMENT, bytes) }
}

/// A plan and the program's own memory.
type Planned<'a> = (&'a Plan, &'a Own);

/// Where an operand is, or why it is nowhere.
fn spot((plan, own): Planned<'_>, o: &Operand) -> Result<Spot, String> {
    let whole = |ty: &TensorType| (ty.dtype == o.dtype).then(|| ty.bytes());
    // Where the place starts in its memory, where the operand's buffer starts in the place, and the place's bytes.
    let (home, base, start, bytes) = match o.place {
        Place::Arena(at) => (Home::Arena, 0, at, Some(plan.arena_bytes)),
        Place::State(slot) if (slot.0 as usize) < plan.state.len() => {
            (Home::State(slot), 0, 0, whole(&plan.state.get(slot).ty))
        }
        Place::State(slot) => return Err(format!("there is no slot {}", slot.0)),
        Place::Input(i) => {
            let bytes = plan.inputs.get(i).and_then(|(_, ty)| whole(ty));
            (Home::Own, own.inputs.get(i).copied().unwrap_or(0), 0, bytes)
        }
    };
    let view: &View = &o.view;
    if view.shape.len() != view.strides.len() {
        return Err(format!("view {view:?} has another number of strides than axes"));
    }
    let at = start + view.offset * o.dtype.size();
    match bytes {
        Some(bytes) if start + o.end_bytes() <= bytes && at.is_multiple_of(o.dtype.size()) => {
            Ok(Spot { home, at: base + at })
        }
        Some(bytes) => Err(format!("view {view:?} ends outside its {bytes} bytes")),
        None => Err(format!("{:?} holds no {}", o.place, o.dtype)),
    }
}

impl Step {
    /// What the calls ask for, as kernels' sources: those that are no kernels are left out.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.lowered
            .calls
            .iter()
            .filter_map(|c| if let Call::Kernel(k) = c { Some(k.source.as_str()) } else { None })
    }

    /// The spot of an argument, and the bytes behind it; none for workspace and tables.
    pub fn spot(&self, arg: Arg) -> Option<Spot> {
        let (spot, more) = match arg {
            Arg::In(i, more) => (self.ins[i], more),
            Arg::Out(i, more) => (self.outs[i], more),
            Arg::Kept(more) => (Spot { home: Home::Own, at: self.kept }, more),
            Arg::Work(_) | Arg::Table => return None,
        };
        Some(Spot { at: spot.at + more, ..spot })
    }
}

#[cfg(test)]
mod tests;
