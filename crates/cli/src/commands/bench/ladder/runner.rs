//! A training step under some tricks, ready to take turns with another.

use super::climb::Common;
use super::report::{Loss, Memory, short};
use super::tricks::{Switches, overrides};
use crate::commands::bench::batches::{Turns, WARM_UP};
use crate::commands::device;
use ocelli_config as config;
use ocelli_ir::memory::Footprint;
use ocelli_train::engine::{Engine, StepProgram};
use ocelli_train::memory::{self, Load};
use ocelli_train::run;

/// The step.
#[derive(Debug)]
pub struct Runner {
    engine: Engine,
    turns: Turns,
    programs: Vec<StepProgram>,
    /// It runs on the CPU.
    pub on_cpu: bool,
    warm: bool,
}

impl Runner {
    /// The step of `train` under these tricks, at its first weights.
    ///
    /// # Errors
    /// If the configuration is refused, or the device cannot do it.
    pub fn new(common: &Common, on: &Switches) -> anyhow::Result<Self> {
        let mut request = common.request.clone();
        request.overrides.extend(overrides(on));
        let resolved = config::load(&request)?;
        let (mut c, executor) = device::of(&resolved, &mut |_| ())?;
        c.trainer.train_batch_size = common.size.batch;
        let load = Load { vocab: common.vocab, text: common.size.text, lengths: 1, validates: false };
        let on_cpu = executor.target().name() == "cpu";
        let setup = run::setup(&c, common.vocab, common.longest, common.total)?;
        let planned = memory::foresee(&c, load, &setup, &*executor)?;
        let mut engine = Engine::new(executor, setup, c.trainer.seed)?;
        engine.adopt(planned);
        engine.set_lr(c.trainer.lr)?;
        let programs = engine.step_programs(common.size)?;
        let turns = Turns::new(&common.batches, c.trainer.grad_accum, &engine)?;
        Ok(Self { engine, turns, programs, on_cpu, warm: false })
    }

    /// Takes a turn; milliseconds a step. The first one comes behind a warm-up.
    ///
    /// # Errors
    /// If the device fails.
    pub fn turn(&mut self, steps: usize) -> anyhow::Result<f64> {
        if !self.warm {
            self.turns.steps(&mut self.engine, WARM_UP)?;
            self.warm = true;
        }
        Ok(short(self.turns.steps(&mut self.engine, steps)?))
    }

    /// The loss of the last step.
    ///
    /// # Errors
    /// If the device fails.
    pub fn loss(&self) -> anyhow::Result<Option<Loss>> {
        let step = self.engine.attempts()?;
        let row = self.engine.metrics(step.saturating_sub(1), step)?;
        Ok(row.first().map(|m| Loss { step, loss: short(f64::from(m.loss())) }))
    }

    /// What it takes on the device.
    pub fn memory(&self) -> Memory {
        let state = self.engine.spec().bytes(|_| true);
        let programs =
            self.programs.iter().map(|p| p.footprint).fold(Footprint::default(), Footprint::beside);
        let (scratch, other) = (programs.arena, programs.work + programs.own);
        Memory { state, scratch, other, total: state + scratch + other }
    }

    /// Launches of a step.
    pub fn launches(&self) -> usize {
        self.programs.iter().map(|p| p.launches * p.runs).sum()
    }

    /// The programs of a step, each with the hash of its plan.
    pub fn plans(&self) -> Vec<String> {
        self.programs.iter().map(|p| format!("{} {:016x}", p.name, p.hash)).collect()
    }
}
