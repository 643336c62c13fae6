//! The graph: a list of nodes in an order that respects their inputs, built by plain Rust code.
//!
//! Invariants: a node's inputs are made by earlier nodes; types are inferred once, when a node is added; nodes
//! are never changed, passes build new graphs. A `state_read` sees the slot as it was when the program
//! started; a `state_write` takes effect when it ends; a slot is written at most once.

use crate::ops::{self, Op};
use crate::{SlotId, StateSpec, TensorType, View};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use thiserror::Error;

/// A value: one output of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) u32);

impl Value {
    /// Index into [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// Shape and dtype.
    pub ty: TensorType,
    /// Index of the node that makes it.
    pub node: usize,
    /// Which of the node's outputs it is.
    pub output: usize,
}

/// An operation applied to values.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// Its arguments.
    pub inputs: Vec<Value>,
    /// What it makes.
    pub outputs: Vec<Value>,
    /// Path of the module it was built in, such as `decoder.blocks.0.attn`.
    pub scope: Arc<str>,
    /// The part of the program that it belongs to.
    pub phase: Phase,
}

/// The parts of a training step, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// From the batch to the loss.
    #[default]
    Forward,
    /// From the loss to the gradients.
    Backward,
    /// From the gradients to the new state.
    Update,
}

/// A node that cannot be built, or a gradient that cannot be taken. Names the op, the module and the line of
/// the model.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{op} in '{scope}' ({file}:{line}): {message}")]
pub struct GraphError {
    /// Name of the op.
    pub op: &'static str,
    /// Path of the module.
    pub scope: String,
    /// Source file that asked for it.
    pub file: &'static str,
    /// Line in that file.
    pub line: u32,
    /// What is wrong, with the shapes found.
    pub message: String,
}

/// A program under construction, or as passes see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    values: Vec<ValueInfo>,
    outputs: Vec<(String, Value)>,
    scope: Vec<String>,
    path: Arc<str>,
    phase: Phase,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graph with other nodes and values, none of them checked: what a pass with a defect might make, for the tests of
    /// those who look for defects. The builder cannot make it.
    pub fn unchecked(&self, nodes: Vec<Node>, values: Vec<ValueInfo>) -> Self {
        Self { nodes, values, ..self.clone() }
    }

    /// The nodes, inputs before users.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All values, by index.
    pub fn values(&self) -> &[ValueInfo] {
        &self.values
    }

    /// Named results, in the order they were declared.
    pub fn outputs(&self) -> &[(String, Value)] {
        &self.outputs
    }

    /// The type of a value.
    pub fn ty(&self, v: Value) -> &TensorType {
        &self.values[v.index()].ty
    }

    /// The shape of a value, copied.
    pub fn shape(&self, v: Value) -> Vec<usize> {
        self.ty(v).shape.0.clone()
    }

    /// Path of the module being built.
    pub fn scope(&self) -> &str {
        &self.path
    }

    /// Opens the module `name` inside the current one.
    pub fn enter(&mut self, name: &str) {
        self.scope.push(name.to_string());
        self.path = self.scope.join(".").into();
    }

    /// Closes the module opened last.
    pub fn leave(&mut self) {
        self.scope.pop();
        self.path = self.scope.join(".").into();
    }

    /// What is added from here on belongs to this part; returns the part before.
    pub fn begin(&mut self, phase: Phase) -> Phase {
        std::mem::replace(&mut self.phase, phase)
    }

    /// Builds what `f` adds in the module and the part of the program of `node`: for passes, whose nodes come from
    /// others.
    pub fn like<T>(&mut self, node: &Node, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.begin(node.phase);
        let out = self.at_path(&node.scope, f);
        self.phase = before;
        out
    }

    /// Adds a node of the graph `from` as it is, on other inputs: its op, module, part of the program and types.
    ///
    /// # Errors
    /// If the op's rule refuses the inputs.
    #[track_caller]
    pub fn take(&mut self, from: &Graph, node: &Node, inputs: &[Value]) -> Result<Vec<Value>, GraphError> {
        let types = node.outputs.iter().map(|&v| from.ty(v).clone()).collect();
        self.like(node, |g| g.typed(node.op.clone(), inputs, types))
    }

    /// Builds what `f` adds under exactly the path `path`.
    pub fn at_path<T>(&mut self, path: &Arc<str>, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.path, path.clone());
        let out = f(self);
        self.path = before;
        out
    }

    /// Adds a node and returns all its outputs.
    ///
    /// # Errors
    /// If the op's shape rule refuses the inputs.
    #[track_caller]
    pub fn many(&mut self, op: impl Into<Op>, inputs: &[Value]) -> Result<Vec<Value>, GraphError> {
        let op = op.into();
        let types: Vec<&TensorType> = inputs.iter().map(|&v| self.ty(v)).collect();
        let out = op.infer(&types).map_err(|m| self.error(op.name(), m))?;
        Ok(self.push(op, inputs, out))
    }

    fn push(&mut self, op: Op, inputs: &[Value], out: Vec<TensorType>) -> Vec<Value> {
        let node = self.nodes.len();
        let outputs = (0..out.len()).map(|i| Value((self.values.len() + i) as u32)).collect::<Vec<_>>();
        self.values.extend(out.into_iter().enumerate().map(|(output, ty)| ValueInfo { ty, node, output }));
        let scope = self.path.clone();
        let phase = self.phase;
        self.nodes.push(Node { op, inputs: inputs.to_vec(), outputs: outputs.clone(), scope, phase });
        outputs
    }

    /// Adds a node whose outputs have these types, which its op's rule must allow: for passes that choose how values
    /// are stored, and for those that take over what others chose.
    ///
    /// # Errors
    /// If the op's rule refuses the inputs or the outputs.
    #[track_caller]
    pub fn typed(
        &mut self,
        op: Op,
        inputs: &[Value],
        types: Vec<TensorType>,
    ) -> Result<Vec<Value>, GraphError> {
        let ins: Vec<&TensorType> = inputs.iter().map(|&v| self.ty(v)).collect();
        op.check(&ins, &types.iter().collect::<Vec<_>>()).map_err(|m| self.error(op.name(), m))?;
        Ok(self.push(op, inputs, types))
    }

    /// Adds a node and returns its first output.
    ///
    /// # Errors
    /// If the op's shape rule refuses the inputs.
    #[track_caller]
    pub fn one(&mut self, op: impl Into<Op>, inputs: &[Value]) -> Result<Value, GraphError> {
        Ok(self.many(op, inputs)?[0])
    }

    /// A program input of a name and type, filled by the host before each run.
    pub fn input(&mut self, name: &str, ty: TensorType) -> Value {
        self.source(ops::Input { name: name.into(), ty }.into())
    }

    /// The contents of a state slot as the program starts. This node *is* the use of a parameter (rule 8).
    pub fn read(&mut self, spec: &StateSpec, slot: SlotId) -> Value {
        self.source(ops::StateRead { slot, ty: spec.get(slot).ty.clone() }.into())
    }

    /// Makes `value` the contents of a slot when the program ends.
    ///
    /// # Errors
    /// If the types differ.
    #[track_caller]
    pub fn write(&mut self, spec: &StateSpec, slot: SlotId, value: Value) -> Result<(), GraphError> {
        self.many(ops::StateWrite { slot, ty: spec.get(slot).ty.clone() }, &[value]).map(|_| ())
    }

    /// Declares a named result, which the host may read after a run.
    pub fn output(&mut self, name: &str, value: Value) {
        self.outputs.push((name.to_string(), value));
    }

    /// Takes back the named results: what was declared for passes to find is not read by the host.
    pub fn take_outputs(&mut self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.outputs)
    }

    /// The op that makes a value.
    pub fn producer(&self, v: Value) -> &Node {
        &self.nodes[self.values[v.index()].node]
    }

    /// True if a node only looks at its first input in another way, where that lies without gaps.
    pub fn is_view(&self, node: &Node) -> bool {
        let shape = node.inputs.first().map(|&v| self.ty(v).shape.clone());
        shape.is_some_and(|shape| node.op.alias(&View::contiguous(shape)).is_some())
    }

    /// What a value is a view of, or itself.
    pub fn root(&self, mut v: Value) -> Value {
        while self.is_view(self.producer(v)) {
            v = self.producer(v).inputs[0];
        }
        v
    }

    /// An error at the place that called the builder.
    #[track_caller]
    pub fn error(&self, op: &'static str, message: impl Into<String>) -> GraphError {
        let at = Location::caller();
        GraphError {
            op,
            scope: self.path.to_string(),
            file: at.file(),
            line: at.line(),
            message: message.into(),
        }
    }

    /// A node without inputs, whose shape rule cannot fail.
    pub(crate) fn source(&mut self, op: Op) -> Value {
        let node = self.nodes.len();
        let value = Value(self.values.len() as u32);
        let ty = op
            .infer(&[])
            .unwrap_or_else(|m| unreachable!("{} has no rule to break: {m}", op.name()))
            .remove(0);
        self.values.push(ValueInfo { ty, node, output: 0 });
        let (scope, phase) = (self.path.clone(), self.phase);
        self.nodes.push(Node { op, inputs: vec![], outputs: vec![value], scope, phase });
        value
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let outs: Vec<String> =
                node.outputs.iter().map(|v| format!("%{} {}", v.0, self.ty(*v))).collect();
            let ins: Vec<String> = node.inputs.iter().map(|v| format!("%{}", v.0)).collect();
            writeln!(f, "{:<44} = {}({})   [{}]", outs.join(", "), node.op, ins.join(", "), node.scope)?;
        }
        for (name, v) in &self.outputs {
            writeln!(f, "output {name} = %{}", v.0)?;
        }
        Ok(())
    }
}
