//! What the programs of a run are made from.

use super::{Captions, EngineError};
use crate::program::{self, Optimizer, Pictures, RunSlots, Size};
use ocelli_ir::executor::{ExecError, Target};
use ocelli_ir::plan::Plan;
use ocelli_ir::{Graph, StateSpec};
use ocelli_models::Model;
use ocelli_passes::pipeline::Watch;
use ocelli_passes::{Options, PassCx, Stage, pipeline};
use std::sync::Arc;

/// What the programs of a run are made from. They are functions of this and of sizes.
#[derive(Debug)]
pub struct Setup {
    /// The model.
    pub model: Box<dyn Model>,
    /// How it is trained; none: it only captions and evaluates.
    pub optimizer: Option<Optimizer>,
    /// The passes.
    pub options: Options,
    /// Room for captions.
    pub captions: Captions,
}

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Train(Size),
    Accumulate(Size),
    Apply,
    Evaluate(Size),
    Prefill(Size),
    Decode,
}

impl Setup {
    /// True if a step takes several batches.
    pub(crate) fn accumulates(&self) -> bool {
        self.optimizer.as_ref().is_some_and(|o| o.batches > 1)
    }

    /// The programs of a step over batches of a size, in their order.
    pub(crate) fn step(&self, size: Size) -> Vec<Kind> {
        if self.accumulates() { vec![Kind::Accumulate(size), Kind::Apply] } else { vec![Kind::Train(size)] }
    }

    /// Positions that there is room for when captioning, the picture's included.
    pub(crate) fn positions(&self) -> usize {
        self.captions.positions.clamp(2, self.model.max_places())
    }

    /// Adds what the state of a run holds beside the slots of its steps: those of captioning and the run's own.
    ///
    /// # Errors
    /// If the programs that caption cannot be built, or a name is taken.
    pub(crate) fn declare_rest(
        &self,
        spec: &mut StateSpec,
        target: &dyn Target,
    ) -> Result<RunSlots, EngineError> {
        // Building one program of each kind names every slot; other sizes add none.
        let prefill = Kind::Prefill(Size { batch: self.captions.side_by_side, text: 1 });
        for kind in [prefill, Kind::Decode] {
            self.graph(kind, spec, target, None)?;
        }
        RunSlots::declare(spec).map_err(EngineError::Slots)
    }

    /// The state of a run, and the plans of some of its programs. Those of a step, which declare the weights, come first.
    ///
    /// # Errors
    /// If one cannot be compiled.
    pub(crate) fn plans(
        &self,
        kinds: &[Kind],
        target: &dyn Target,
    ) -> Result<(Arc<StateSpec>, Vec<Plan>), EngineError> {
        let mut spec = StateSpec::default();
        // Slots in the order in which an engine has them.
        if self.optimizer.is_none() {
            self.declare_rest(&mut spec, target)?;
        }
        let graphs = kinds.iter().map(|&kind| self.graph(kind, &mut spec, target, None));
        let graphs = graphs.collect::<Result<Vec<_>, _>>()?;
        self.declare_rest(&mut spec, target)?;
        let spec = Arc::new(spec);
        let plans = graphs.iter().map(|(name, graph)| Ok(pipeline::plan(name, graph, &spec, target)?));
        let plans = plans.collect::<Result<Vec<_>, EngineError>>()?;
        Ok((spec, plans))
    }

    fn optimizer(&self) -> Result<&Optimizer, ExecError> {
        let misuse = || ExecError::Misuse { program: "train".into(), message: "it has no optimizer".into() };
        self.optimizer.as_ref().ok_or_else(misuse)
    }

    /// The name and the graph of a program, behind all passes. `watch` sees it behind each.
    pub(crate) fn graph<'a>(
        &self,
        kind: Kind,
        spec: &'a mut StateSpec,
        target: &'a dyn Target,
        watch: Option<&'a mut Watch<'a>>,
    ) -> Result<(String, Graph), EngineError> {
        let mut cx = PassCx { options: self.options, watch, ..PassCx::new(spec, target) };
        if matches!(kind, Kind::Prefill(_) | Kind::Decode) {
            // Captions are read, not learnt from: they are worth 32 bits.
            cx.options.precision = None;
        }
        let (model, places) = (&*self.model, self.positions());
        let sized = |name: &str, s: Size| format!("{name}[B={},T={}]", s.batch, s.text);
        let (name, graph) = match kind {
            Kind::Train(size) => {
                let optimizer = self.optimizer()?;
                (sized("train", size), program::train(&mut cx, model, size, Pictures::Bytes, optimizer)?)
            }
            Kind::Accumulate(size) => {
                let optimizer = self.optimizer()?;
                let graph = program::accumulate(&mut cx, model, size, Pictures::Bytes, optimizer)?;
                (sized("accumulate", size), graph)
            }
            Kind::Apply => ("apply".into(), program::apply(&mut cx, self.optimizer()?)?),
            Kind::Evaluate(size) => {
                (sized("evaluate", size), program::evaluate(&mut cx, model, size, Pictures::Bytes)?)
            }
            Kind::Prefill(size) => (sized("prefill", size), program::prefill(&mut cx, model, size, places)?),
            Kind::Decode => {
                let batch = self.captions.side_by_side;
                (format!("decode[B={batch}]"), program::decode(&mut cx, model, batch, places)?)
            }
        };
        let graph = pipeline::run(Stage::Whole, &name, graph, &mut cx)?;
        Ok((name, graph))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::memory::Planned;
    use ocelli_cpu::CpuExecutor;
    use ocelli_ir::executor::Executor;

    /// What was planned to foresee its memory is what is loaded.
    #[test]
    fn an_engine_takes_over_the_plans_of_its_setup() {
        let executor: Arc<dyn Executor> = Arc::new(CpuExecutor::new(Some(1)).unwrap());
        let small = ["model_config.n_layer=1", "model_config.num_blks=1", "trainer_config.grad_accum=2"];
        let overrides = small.map(String::from).to_vec();
        let asked = ocelli_config::Request { name: None, path: None, overrides };
        let c = ocelli_config::load(&asked).unwrap().config;
        let size = Size { batch: 3, text: 5 };
        for trains in [true, false] {
            let setup = || {
                let setup = crate::run::setup(&c, 9, 20, 100).unwrap();
                Setup { optimizer: setup.optimizer.filter(|_| trains), ..setup }
            };
            let mut kinds = if trains { setup().step(size) } else { vec![] };
            let prefill = Size { batch: setup().captions.side_by_side, text: 2 };
            kinds.extend([Kind::Evaluate(size), Kind::Prefill(prefill), Kind::Decode]);
            let (_, plans) = setup().plans(&kinds, executor.target()).unwrap();
            let hashes: Vec<u64> = plans.iter().map(Plan::hash).collect();
            let mut engine = Engine::new(executor.clone(), setup(), 1).unwrap();
            engine.adopt(Planned(kinds.iter().copied().zip(plans).collect()));
            assert_eq!(engine.planned.len(), kinds.len());
            for (&kind, hash) in kinds.iter().zip(hashes) {
                engine.load(kind).unwrap();
                assert_eq!(engine.programs[&kind].plan().hash(), hash);
            }
            assert!(engine.planned.is_empty());
        }
    }
}
