//! What the programs of a run are made from.

use super::{Captions, EngineError};
use crate::program::{self, Optimizer, Pictures, Size};
use ocelli_ir::executor::{ExecError, Target};
use ocelli_ir::{Graph, StateSpec};
use ocelli_models::Model;
use ocelli_passes::pipeline::Watch;
use ocelli_passes::{Options, PassCx, Stage, pipeline};

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
        let (model, places) = (&*self.model, self.captions.positions);
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
