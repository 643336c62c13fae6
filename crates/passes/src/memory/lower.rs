//! Nodes to launches on numbered buffers. Views become views; where a kernel cannot read one, a copy is made.

use super::{Buffer, Draft, Drafts, Home, Loc};
use ocelli_ir::executor::Target;
use ocelli_ir::ops::Contiguous;
use ocelli_ir::{Graph, Node, Op, Value, View};
use std::collections::HashMap;

pub(super) fn lower(graph: &Graph, target: &dyn Target) -> Drafts {
    let mut lowering = Lowering {
        graph,
        target,
        drafts: Drafts::default(),
        locs: Vec::new(),
        slots: HashMap::new(),
        copies: HashMap::new(),
    };
    graph.nodes().iter().for_each(|node| lowering.node(node));
    let mut drafts = lowering.drafts;
    drafts.outputs =
        graph.outputs().iter().map(|(name, v)| (name.clone(), lowering.locs[v.index()].clone())).collect();
    drafts
}

struct Lowering<'a> {
    graph: &'a Graph,
    target: &'a dyn Target,
    drafts: Drafts,
    /// Location of each value so far.
    locs: Vec<Loc>,
    /// Buffer of each slot that was read.
    slots: HashMap<u32, usize>,
    /// Copies made of views that some kernel could not read, by value.
    copies: HashMap<usize, Loc>,
}

impl Lowering<'_> {
    fn node(&mut self, node: &Node) {
        match &node.op {
            Op::Input(op) => {
                let home = Home::Input(self.drafts.inputs.len());
                self.drafts.inputs.push((op.name.to_string(), op.ty.clone()));
                self.source(home, &op.ty);
            }
            Op::StateRead(op) => match self.slots.get(&op.slot.0) {
                Some(&buffer) => {
                    self.locs.push(Loc { buffer, view: View::contiguous(op.ty.shape.clone()) });
                }
                None => {
                    self.slots.insert(op.slot.0, self.drafts.buffers.len());
                    self.source(Home::State(op.slot), &op.ty);
                }
            },
            Op::StateWrite(op) => {
                let from = self.locs[node.inputs[0].index()].clone();
                self.drafts.writes.push((op.slot, from, node.scope.clone()));
            }
            op => match self.aliased(op, node) {
                Some(locs) => self.locs.extend(locs),
                None => self.launch(node),
            },
        }
    }

    /// The locations of the outputs of an op that only looks at its input in another way. A reshape of elements
    /// that do not lie in order looks at a copy.
    fn aliased(&mut self, op: &Op, node: &Node) -> Option<Vec<Loc>> {
        let value = *node.inputs.first()?;
        let mut loc = self.locs[value.index()].clone();
        let views = match op.alias(&loc.view) {
            Some(views) => views,
            None => {
                let views = op.alias(&View::contiguous(loc.view.shape.clone()))?;
                loc = self.copy(value, loc, node);
                views
            }
        };
        Some(views.into_iter().map(|view| Loc { buffer: loc.buffer, view }).collect())
    }

    fn source(&mut self, home: Home, ty: &ocelli_ir::TensorType) {
        self.locs.push(Loc { buffer: self.drafts.buffers.len(), view: View::contiguous(ty.shape.clone()) });
        self.drafts.buffers.push(Buffer { home, ty: ty.clone() });
    }

    fn launch(&mut self, node: &Node) {
        let inputs = (0..node.inputs.len()).map(|i| self.readable(node, i)).collect();
        let outputs: Vec<Loc> =
            node.outputs.iter().map(|&v| self.drafts.scratch(self.graph.ty(v).clone())).collect();
        self.locs.extend(outputs.iter().cloned());
        let (op, scope, phase) = (node.op.clone(), node.scope.clone(), node.phase);
        self.drafts.launches.push(Draft { op, scope, phase, inputs, outputs });
    }

    /// The location of input `i`, or of a copy that the kernel can read.
    fn readable(&mut self, node: &Node, i: usize) -> Loc {
        let value = node.inputs[i];
        let loc = self.locs[value.index()].clone();
        if loc.view.is_contiguous() || self.target.reads_view(&node.op, i, &loc.view) {
            return loc;
        }
        self.copy(value, loc, node)
    }

    /// A copy of a value without gaps, first for `node`; one serves all who need it.
    fn copy(&mut self, value: Value, from: Loc, node: &Node) -> Loc {
        if let Some(copy) = self.copies.get(&value.index()) {
            return copy.clone();
        }
        let copy = self.drafts.scratch(self.graph.ty(value).clone());
        let (inputs, outputs) = (vec![from], vec![copy.clone()]);
        let (op, scope, phase) = (Contiguous.into(), node.scope.clone(), node.phase);
        self.drafts.launches.push(Draft { op, scope, phase, inputs, outputs });
        self.copies.insert(value.index(), copy.clone());
        copy
    }
}
