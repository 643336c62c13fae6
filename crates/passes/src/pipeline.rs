//! The pipeline: the list of passes that turns a graph into a plan.

use crate::{memory, simplify, verify};
use ocelli_ir::executor::Target;
use ocelli_ir::plan::Plan;
use ocelli_ir::{Graph, GraphError, StateSpec};
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

/// One pass.
pub struct Pass {
    /// Name in messages and in `explain`.
    pub name: &'static str,
    /// What it may change.
    pub class: Class,
    run: fn(&Graph) -> Result<Graph, GraphError>,
}

/// All passes from graph to graph, in order. Differentiation comes before them, while the program is built;
/// scheduling and memory planning come after them.
pub const PASSES: &[Pass] = &[Pass { name: "simplify", class: Class::Exact, run: simplify::simplify }];

/// A program that could not be compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The graph cannot be built or differentiated.
    #[error(transparent)]
    Graph(#[from] GraphError),
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

/// Runs all passes and plans the memory.
///
/// # Errors
/// If a pass fails or leaves a broken program behind.
pub fn compile(
    name: &str,
    graph: Graph,
    state: &Arc<StateSpec>,
    target: &dyn Target,
) -> Result<Plan, CompileError> {
    let broken = |pass, what, before: &Graph| CompileError::Broken {
        program: name.to_string(),
        pass,
        what,
        before: before.to_string(),
    };
    verify::graph(&graph, state).map_err(|what| broken("build", what, &graph))?;
    let mut graph = graph;
    for pass in PASSES {
        let next = (pass.run)(&graph)?;
        verify::graph(&next, state).map_err(|what| broken(pass.name, what, &graph))?;
        graph = next;
    }
    let plan = memory::plan(name, &graph, state, target);
    verify::plan(&plan, target).map_err(|what| broken("memory", what, &graph))?;
    Ok(plan)
}
