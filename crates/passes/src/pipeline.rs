//! The pipeline: the list of passes that turns a graph into a plan.
//!
//! A program is built in this order: the forward graph, the passes of [`Stage::Forward`], differentiation and
//! optimiser (appended by whoever builds the program), the passes of [`Stage::Whole`], the plan. A pass may add
//! slots to the state (a 16-bit copy of a weight, a loss scale), so the state is made after the passes have run.

use crate::precision::{self, Precision};
use crate::{attention, fuse, memory, recompute, rounded, row_slice, simplify, verify};
use ocelli_ir::executor::Target;
use ocelli_ir::plan::Plan;
use ocelli_ir::{Graph, GraphError, StateSpec};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// What a pass may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nothing: results are equal to the bit.
    Exact,
    /// The order of sums: results agree within the f32 tolerances.
    Reassociating,
    /// The precision of numbers.
    Precision,
}

/// When a pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// On the forward graph, before differentiation: gradients follow of themselves.
    Forward,
    /// On the whole program, gradients and optimiser included.
    Whole,
}

/// The switches of the passes that can be turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Pass `row_slice`.
    pub row_slice: bool,
    /// Attention as one op, whose weights are never in memory; off: pass `attention`.
    pub flash_attention: bool,
    /// Pass `recompute`.
    pub recompute: bool,
    /// Pass `fuse`.
    pub fuse: bool,
    /// Pass `precision`; none: everything is stored in 32 bits.
    pub precision: Option<Precision>,
}

impl Default for Options {
    fn default() -> Self {
        Self { row_slice: true, flash_attention: true, recompute: false, fuse: true, precision: None }
    }
}

/// Sees a graph and the name of what made it.
pub type Watch<'a> = dyn FnMut(&'static str, &Graph) + 'a;

/// What a pass works with beside the graph.
pub struct PassCx<'a> {
    /// The state of the run. Slots may be added.
    pub state: &'a mut StateSpec,
    /// The device.
    pub target: &'a dyn Target,
    /// What is turned on.
    pub options: Options,
    /// Sees the graph as it was built, and behind each pass, with the pass's name.
    pub watch: Option<&'a mut Watch<'a>>,
}

impl fmt::Debug for PassCx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PassCx for {} with {:?}", self.target.name(), self.options)
    }
}

impl<'a> PassCx<'a> {
    /// The options of [`Options::default`].
    pub fn new(state: &'a mut StateSpec, target: &'a dyn Target) -> Self {
        Self { state, target, options: Options::default(), watch: None }
    }

    /// Shows a graph to the watcher.
    pub fn show(&mut self, name: &'static str, graph: &Graph) {
        if let Some(watch) = &mut self.watch {
            watch(name, graph);
        }
    }
}

/// One pass.
pub struct Pass {
    /// Name in messages and in `explain`.
    pub name: &'static str,
    /// What it may change.
    pub class: Class,
    /// When it runs.
    pub stage: Stage,
    /// Whether it runs.
    pub on: fn(&Options) -> bool,
    run: fn(&Graph, &mut PassCx<'_>) -> Result<Graph, GraphError>,
}

/// All passes from graph to graph, in order. Scheduling and memory planning come after them.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "row_slice",
        // Forward to the bit; a weight's gradient sums fewer rows, all others being 0, in other groups.
        class: Class::Reassociating,
        stage: Stage::Forward,
        on: |o| o.row_slice,
        run: |g, _| row_slice::row_slice(g),
    },
    Pass {
        name: "attention",
        class: Class::Reassociating,
        stage: Stage::Forward,
        on: |o| !o.flash_attention,
        run: |g, _| attention::materialise(g),
    },
    Pass {
        name: "recompute",
        class: Class::Exact,
        stage: Stage::Whole,
        on: |o| o.recompute,
        run: |g, _| recompute::recompute(g),
    },
    Pass {
        name: "precision",
        class: Class::Precision,
        stage: Stage::Whole,
        on: |o| o.precision.is_some(),
        run: |g, cx| cx.options.precision.map_or_else(|| Ok(g.clone()), |p| precision::precision(g, p)),
    },
    Pass {
        name: "rounded",
        class: Class::Exact,
        stage: Stage::Whole,
        on: |_| true,
        run: |g, cx| rounded::rounded(g, cx.state),
    },
    Pass {
        name: "simplify",
        class: Class::Exact,
        stage: Stage::Whole,
        on: |_| true,
        run: |g, _| simplify::simplify(g),
    },
    Pass {
        name: "fuse",
        // The graph means the same to the bit; kernels need not round what lies between.
        class: Class::Reassociating,
        stage: Stage::Whole,
        on: |o| o.fuse,
        run: |g, cx| fuse::fuse(g, cx.target),
    },
];

/// A program that could not be compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The graph cannot be built or differentiated.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A setting of the run leaves nothing to build.
    #[error("{0}")]
    Setting(String),
    /// A pass broke an invariant: a defect of Ocelli, with what is needed to find it.
    #[error("program '{program}': pass '{pass}' broke the program: {what}\nthe program before it:\n{before}")]
    Broken {
        /// Name of the program.
        program: String,
        /// Name of the pass.
        pass: &'static str,
        /// The invariant.
        what: String,
        /// The graph before the pass.
        before: String,
    },
}

impl CompileError {
    fn broken(program: &str, pass: &'static str, what: String, before: &Graph) -> Self {
        Self::Broken { program: program.into(), pass, what, before: before.to_string() }
    }
}

/// Runs the passes of a stage that are turned on, and verifies the program before and behind each.
///
/// # Errors
/// If a pass fails or leaves a broken program behind.
pub fn run(stage: Stage, name: &str, graph: Graph, cx: &mut PassCx<'_>) -> Result<Graph, CompileError> {
    verify::graph(&graph, cx.state).map_err(|what| CompileError::broken(name, "build", what, &graph))?;
    let built = if stage == Stage::Forward { "forward" } else { "whole" };
    cx.show(built, &graph);
    let mut graph = graph;
    let options = cx.options;
    for pass in PASSES.iter().filter(|p| p.stage == stage && (p.on)(&options)) {
        let next = (pass.run)(&graph, cx)?;
        verify::graph(&next, cx.state).map_err(|what| CompileError::broken(name, pass.name, what, &graph))?;
        cx.show(pass.name, &next);
        graph = next;
    }
    Ok(graph)
}

/// Plans the memory of a graph that has been through the passes.
///
/// # Errors
/// If the plan is not sound: a defect.
pub fn plan(
    name: &str,
    graph: &Graph,
    state: &Arc<StateSpec>,
    target: &dyn Target,
) -> Result<Plan, CompileError> {
    let plan = memory::plan(name, graph, state, target);
    verify::plan(&plan, target).map_err(|what| CompileError::broken(name, "memory", what, graph))?;
    Ok(plan)
}

/// Runs the passes of [`Stage::Whole`] with everything turned on, and plans the memory: for programs whose passes
/// add no state.
///
/// # Errors
/// If a pass fails, or leaves a broken program behind.
pub fn compile(
    name: &str,
    graph: Graph,
    state: &Arc<StateSpec>,
    target: &dyn Target,
) -> Result<Plan, CompileError> {
    let mut grown = (**state).clone();
    let graph = run(Stage::Whole, name, graph, &mut PassCx::new(&mut grown, target))?;
    plan(name, &graph, &Arc::new(grown), target)
}
