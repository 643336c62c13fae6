//! What a training step would be, without taking one: the graph behind each pass, the plan, the state.

use crate::engine::{EngineError, Setup};
use crate::program::Size;
use ocelli_ir::executor::Target;
use ocelli_ir::plan::Plan;
use ocelli_ir::{Graph, StateSpec, TensorType, Value};
use ocelli_passes::pipeline;
use std::sync::Arc;

/// A program as one pass left it.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Name of the pass, or of what built the graph.
    pub name: &'static str,
    /// Number of nodes.
    pub nodes: usize,
    /// Floating-point operations, views included where ops count them.
    pub flops: u64,
    /// Bytes that all ops read and write together, if nothing is fused.
    pub bytes: u64,
    /// The graph, a line a node.
    pub text: String,
}

/// One program of a step.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The graph, from the model to the last pass.
    pub stages: Vec<Stage>,
    /// What runs.
    pub plan: Plan,
}

/// The programs of a training step over batches of a size: one, or two if it takes several batches.
///
/// # Errors
/// If they cannot be compiled.
pub fn step(setup: &Setup, size: Size, target: &dyn Target) -> Result<Vec<Explained>, EngineError> {
    let mut spec = StateSpec::default();
    let mut graphs = Vec::new();
    for kind in setup.step(size) {
        let mut stages = Vec::new();
        let mut watch = |name: &'static str, graph: &Graph| stages.push(stage(name, graph));
        let (name, graph) = setup.graph(kind, &mut spec, target, Some(&mut watch))?;
        graphs.push((name, graph, stages));
    }
    // A run makes room for captions as well.
    setup.declare_rest(&mut spec, target)?;
    let spec = Arc::new(spec);
    let plans = graphs.into_iter().map(|(name, graph, stages)| {
        Ok(Explained { stages, plan: pipeline::plan(&name, &graph, &spec, target)? })
    });
    plans.collect()
}

fn stage(name: &'static str, graph: &Graph) -> Stage {
    let types = |values: &[Value]| values.iter().map(|&v| graph.ty(v)).collect::<Vec<&TensorType>>();
    let (mut flops, mut bytes) = (0, 0);
    for node in graph.nodes() {
        let (ins, outs) = (types(&node.inputs), types(&node.outputs));
        flops += node.op.flops(&ins, &outs);
        bytes += node.op.bytes(&ins, &outs);
    }
    Stage { name, nodes: graph.nodes().len(), flops, bytes, text: graph.to_string() }
}
