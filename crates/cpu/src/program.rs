//! A loaded plan.

use crate::arena::{Arena, lock};
use crate::buffer::Buffer;
use crate::check::{self, Fault, Loaded};
use crate::cx::Cx;
use crate::launch::{gather, run_launch};
use crate::mem::{self, Bases, Loc, Room};
use crate::state::{CpuState, out_of_memory};
use crate::target::NAME;
use ocelli_ir::StateSpec;
use ocelli_ir::executor::{ExecError, Input, LaunchTime, Need, Program, State};
use ocelli_ir::plan::Plan;
use pulp::Arch;
use rayon::ThreadPool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A plan made ready to run on the CPU.
#[derive(Debug)]
pub struct CpuProgram {
    plan: Plan,
    launches: Vec<Loaded>,
    outputs: Vec<Loc>,
    /// Copies of outputs that do not lie in the arena, made when a run ends.
    kept: Vec<Option<Buffer>>,
    /// Copies of inputs that the host gave at an odd address.
    staged: Vec<Option<Buffer>>,
    arena: Arc<Mutex<Arena>>,
    pool: Arc<ThreadPool>,
    /// The last state's specification that was found to fit.
    fits: Option<Arc<StateSpec>>,
    id: u64,
}

impl CpuProgram {
    pub(crate) fn load(
        plan: Plan,
        arena: &Arc<Mutex<Arena>>,
        pool: &Arc<ThreadPool>,
    ) -> Result<Self, ExecError> {
        let launches = (0..plan.launches.len())
            .map(|i| check::launch(&plan, i).map_err(|fault| refused(&plan, i, fault)))
            .collect::<Result<Vec<_>, _>>()?;
        let outputs = plan
            .outputs
            .iter()
            .map(|(name, o)| check::operand(&plan, o).map_err(|f| refused_output(&plan, name, f)))
            .collect::<Result<Vec<_>, _>>()?;
        let kept = outputs.iter().map(keep).collect::<Result<Vec<_>, _>>()?;
        let most = |f: fn(&Loaded) -> usize| launches.iter().map(f).max().unwrap_or(0);
        let id = {
            let mut shared = lock(arena);
            let wide = most(|l| l.wide.as_ref().map_or(0, |w| w.bytes));
            let (workspace, scratch) = (most(|l| l.needs.workspace), most(|l| l.needs.scratch));
            shared.grow(check::arena_bytes(&plan), workspace, wide, scratch)?;
            shared.loaded += 1;
            shared.loaded
        };
        let staged = plan.inputs.iter().map(|_| None).collect();
        let (arena, pool) = (arena.clone(), pool.clone());
        Ok(Self { plan, launches, outputs, kept, staged, arena, pool, fits: None, id })
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        inputs: &[Input<'_>],
        mut times: Option<&mut Vec<Duration>>,
    ) -> Result<(), ExecError> {
        self.plan.check_inputs(inputs)?;
        let spec = state.spec().clone();
        let Some(state) = state.as_any().downcast_mut::<CpuState>() else {
            return Err(ExecError::misuse(&self.plan.name, "the state is another executor's"));
        };
        self.check_state(&spec)?;
        self.stage(inputs)?;
        let arena = &mut *lock(&self.arena);
        arena.ran = self.id;
        let bases = Bases::new(&mut arena.memory, &mut state.slots, inputs, &self.staged, &mut arena.wide);
        let (workspace, scratch, threads) =
            (&mut arena.workspace, &arena.scratch, self.pool.current_num_threads());
        let (plan, launches) = (&self.plan, &self.launches);
        let (outputs, kept) = (&self.outputs, &mut self.kept);
        self.pool.install(|| {
            let cx = Cx { arch: Arch::new(), threads, scratch };
            for (i, launch) in launches.iter().enumerate() {
                let start = times.is_some().then(Instant::now);
                let (ins, outs) = match &launch.wide {
                    Some(wide) => (&wide.ins, &wide.outs),
                    None => (&launch.ins, &launch.outs),
                };
                // SAFETY: `check::launch` accepted these operands, and those of the last launch are gone.
                unsafe {
                    if let Some(wide) = &launch.wide {
                        mem::widen(&cx, &bases, &launch.ins, &launch.outs, wide);
                    }
                    let (ins, outs) = mem::operands(&bases, ins, outs);
                    run_launch(&cx, workspace, &plan.launches[i].op, launch.fallback, ins, outs);
                    if let Some(wide) = &launch.wide {
                        mem::narrow(&cx, &bases, &launch.outs, wide);
                    }
                }
                if let (Some(times), Some(start)) = (times.as_deref_mut(), start) {
                    times.push(start.elapsed());
                }
            }
            for (loc, kept) in outputs.iter().zip(kept) {
                if let Some(kept) = kept {
                    // SAFETY: all launches are over; the output is only read.
                    let (ins, _) = unsafe { mem::operands(&bases, std::slice::from_ref(loc), &[]) };
                    gather(ins, kept.bytes_mut());
                }
            }
        });
        Ok(())
    }

    /// The state must have the plan's slots, perhaps with more behind them.
    fn check_state(&mut self, spec: &Arc<StateSpec>) -> Result<(), ExecError> {
        let same = |a: &Arc<StateSpec>| Arc::ptr_eq(a, spec);
        if same(&self.plan.state) || self.fits.as_ref().is_some_and(same) {
            return Ok(());
        }
        self.plan.check_state(spec)?;
        self.fits = Some(spec.clone());
        Ok(())
    }

    /// Copies inputs that are not aligned for their element type.
    fn stage(&mut self, inputs: &[Input<'_>]) -> Result<(), ExecError> {
        for (((name, ty), input), staged) in self.plan.inputs.iter().zip(inputs).zip(&mut self.staged) {
            let Some(bytes) = input.bytes() else {
                let message = format!("input '{name}': the store is another executor's");
                return Err(ExecError::misuse(&self.plan.name, message));
            };
            if (bytes.as_ptr() as usize).is_multiple_of(ty.dtype.size()) {
                *staged = None;
                continue;
            }
            if staged.is_none() {
                *staged = Some(
                    Buffer::new(bytes.len()).ok_or_else(|| out_of_memory(name, bytes.len(), Need::Batch))?,
                );
            }
            if let Some(buffer) = staged {
                buffer.bytes_mut().copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}

impl Program for CpuProgram {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn run(&mut self, state: &mut dyn State, inputs: &[Input<'_>]) -> Result<(), ExecError> {
        self.execute(state, inputs, None)
    }

    fn run_timed(
        &mut self,
        state: &mut dyn State,
        inputs: &[Input<'_>],
    ) -> Result<Vec<LaunchTime>, ExecError> {
        let mut times = Vec::with_capacity(self.launches.len());
        self.execute(state, inputs, Some(&mut times))?;
        let time = |(first, t): (usize, &Duration)| LaunchTime { first, count: 1, seconds: t.as_secs_f64() };
        Ok(times.iter().enumerate().map(time).collect())
    }

    fn output(&self, index: usize) -> Result<Vec<u8>, ExecError> {
        let Some((_, operand)) = self.plan.outputs.get(index) else {
            let n = self.plan.outputs.len();
            return Err(ExecError::misuse(&self.plan.name, format!("there is no output {index}, only {n}")));
        };
        let mut arena = lock(&self.arena);
        if arena.ran != self.id {
            return Err(ExecError::misuse(
                &self.plan.name,
                "has not run since another program did: its outputs are gone",
            ));
        }
        if let Some(kept) = &self.kept[index] {
            return Ok(kept.bytes().to_vec());
        }
        let mut bytes = vec![0; operand.ty().bytes()];
        let arena = &mut *arena;
        let bases = Bases::new(&mut arena.memory, &mut [], &[], &[], &mut arena.wide);
        // SAFETY: `check::operand` accepted the operand, and nothing else runs while the arena is locked.
        let (ins, _) = unsafe { mem::operands(&bases, std::slice::from_ref(&self.outputs[index]), &[]) };
        gather(ins, &mut bytes);
        Ok(bytes)
    }
}

/// Memory for an output that the arena does not hold.
fn keep(loc: &Loc) -> Result<Option<Buffer>, ExecError> {
    if loc.room == Room::Arena {
        return Ok(None);
    }
    let bytes = loc.layout.numel() * loc.dtype.size();
    Ok(Some(Buffer::new(bytes).ok_or_else(|| out_of_memory("an output", bytes, Need::Batch))?))
}

fn refused(plan: &Plan, index: usize, fault: Fault) -> ExecError {
    let l = &plan.launches[index];
    match fault {
        Fault::Wrong(m) => {
            ExecError::misuse(&plan.name, format!("launch {index} ({} in '{}'): {m}", l.op, l.scope))
        }
        Fault::Lacking(message) => ExecError::Unsupported {
            program: plan.name.clone(),
            op: format!("launch {index} ({} in '{}')", l.op, l.scope),
            device: NAME.into(),
            message,
        },
    }
}

fn refused_output(plan: &Plan, name: &str, fault: Fault) -> ExecError {
    let (Fault::Wrong(m) | Fault::Lacking(m)) = fault;
    ExecError::misuse(&plan.name, format!("output '{name}': {m}"))
}

#[cfg(test)]
mod tests {
    use crate::CpuExecutor;
    use ocelli_ir::executor::{Executor, Program};
    use ocelli_ir::ops::{Add, Increment};
    use ocelli_ir::plan::{Launch, Operand, Place, Plan};
    use ocelli_ir::{DType, Init, Op, Slot, SlotId, SlotKind, StateSpec, TensorType, View};
    use std::sync::Arc;

    fn operand(place: Place, dtype: DType) -> Operand {
        Operand { place, contents: 0, view: View::contiguous([3]), dtype }
    }

    /// y = x + x, and a counter counts in place.
    fn plan() -> Plan {
        let mut spec = StateSpec::default();
        let ty = TensorType::u32([3]);
        let slot = Slot { name: "n".into(), ty, kind: SlotKind::Counter, init: Init::Constant(7.0) };
        spec.declare(slot).unwrap();
        let launch = |op: Op, inputs: Vec<Operand>, outputs: Vec<Operand>| Launch {
            op,
            scope: "".into(),
            inputs,
            outputs,
            branch: 0,
            after: vec![],
        };
        let (x, y) = (operand(Place::Input(0), DType::F32), operand(Place::Arena(0), DType::F32));
        let n = operand(Place::State(SlotId(0)), DType::U32);
        Plan {
            name: "fallback".into(),
            launches: vec![
                launch(Add.into(), vec![x.clone(), x], vec![y.clone()]),
                launch(Increment.into(), vec![n.clone()], vec![n.clone()]),
            ],
            inputs: vec![("x".into(), TensorType::f32([3]))],
            outputs: vec![("y".into(), y), ("n".into(), n)],
            arena_bytes: 64,
            state: Arc::new(spec),
        }
    }

    #[test]
    fn the_reference_evaluation_stands_in_for_a_kernel() {
        let executor = CpuExecutor::new(Some(1)).unwrap();
        let run = |fallback: bool| {
            let mut program = executor.load_program(plan()).unwrap();
            program.launches.iter_mut().for_each(|l| l.fallback = fallback);
            let mut state = executor.new_state(&plan().state, 0).unwrap();
            let x: Vec<u8> = [1.5f32, -2.0, 0.1].iter().flat_map(|x| x.to_le_bytes()).collect();
            program.run(&mut *state, &[(&x).into()]).unwrap();
            [program.output(0).unwrap(), program.output(1).unwrap()]
        };
        assert_eq!(run(true), run(false));
        assert_eq!(run(true)[1], [8u32; 3].map(u32::to_le_bytes).concat());
    }
}
