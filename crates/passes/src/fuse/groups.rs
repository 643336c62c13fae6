//! Which ops run as one: units that grow by joining the maker of a value with a reader of it.
//!
//! Invariant: `order` holds every unit once, and each behind the units whose values it reads. Two units may be joined
//! if no third one reads, through whatever others, from the first and feeds the second: then those between that need the
//! first can run behind both.

use super::body;
use crate::simplify::live;
use ocelli_ir::executor::Target;
use ocelli_ir::ops::Fused;
use ocelli_ir::{Graph, GraphError, Node, Op, TensorType, Value};
use std::collections::HashSet;

/// Most ops in a unit: beyond that a kernel gains nothing, and making its body over and over would take long.
const MOST: usize = 64;

/// The units of a graph. A unit's number is that of one of its nodes.
#[derive(Clone)]
pub(super) struct Groups<'a> {
    pub(super) graph: &'a Graph,
    /// What each value is a view of.
    roots: Vec<Value>,
    /// The nodes that read each value, through views too; only of values that are no views.
    pub(super) readers: Vec<Vec<usize>>,
    /// The values that the program gives out, likewise.
    pub(super) given_out: Vec<bool>,
    /// The unit of each node; none for views, for what runs nowhere or anywhere (inputs, state, constants), and for what nothing
    /// needs.
    unit: Vec<Option<usize>>,
    /// Nodes of each unit, in order.
    members: Vec<Vec<usize>>,
    /// The units in the order in which they run; none where one has gone.
    order: Vec<Option<usize>>,
    /// Where in `order` each unit is.
    at: Vec<usize>,
}

/// The units between two that are joined.
struct Between {
    /// Those that stay before.
    stay: Vec<usize>,
    /// The first of the two, and those that need it: they run behind the joined unit.
    later: Vec<usize>,
}

impl<'a> Groups<'a> {
    /// Each op for itself; what nothing needs is left out.
    pub(super) fn new(graph: &'a Graph) -> Self {
        let live = live(graph);
        let (nodes, values) = (graph.nodes().len(), graph.values().len());
        let mut groups = Self {
            graph,
            roots: Vec::with_capacity(values),
            readers: vec![Vec::new(); values],
            given_out: vec![false; values],
            unit: vec![None; nodes],
            members: vec![Vec::new(); nodes],
            order: Vec::with_capacity(nodes),
            at: vec![0; nodes],
        };
        for (i, node) in graph.nodes().iter().enumerate() {
            if graph.is_view(node) {
                let root = groups.root(node.inputs[0]);
                groups.roots.extend(node.outputs.iter().map(|_| root));
                continue;
            }
            groups.roots.extend(&node.outputs);
            if live[i] && !matches!(node.op, Op::Input(_) | Op::StateRead(_) | Op::Constant(_)) {
                groups.at[i] = groups.order.len();
                groups.order.push(Some(i));
                (groups.unit[i], groups.members[i]) = (Some(i), vec![i]);
                node.inputs.iter().for_each(|v| groups.readers[groups.roots[v.index()].index()].push(i));
            }
        }
        graph.outputs().iter().for_each(|(_, v)| groups.given_out[groups.roots[v.index()].index()] = true);
        groups
    }

    /// What a value is a view of, or itself.
    pub(super) fn root(&self, v: Value) -> Value {
        self.roots[v.index()]
    }

    /// What each value is a view of, by its index.
    pub(super) fn roots(&self) -> &[Value] {
        &self.roots
    }

    /// The nodes of each unit, in the order in which units run.
    pub(super) fn units(&self) -> impl Iterator<Item = &[usize]> {
        self.order.iter().flatten().map(|&u| &self.members[u][..])
    }

    /// True if other nodes than these read a value, or the program gives it out.
    pub(super) fn read_outside(&self, v: Value, members: &[usize]) -> bool {
        self.given_out[v.index()] || self.readers[v.index()].iter().any(|r| members.binary_search(r).is_err())
    }

    /// Joins the unit of a node with one that makes what the node reads, the nearest for which that works.
    ///
    /// # Errors
    /// Never on a graph that was built by the builder; types are checked anew.
    pub(super) fn grow(&mut self, node: usize, target: &dyn Target) -> Result<bool, GraphError> {
        let reader = &self.graph.nodes()[node];
        let Some(unit) = self.unit[node].filter(|_| may_join(reader)) else { return Ok(false) };
        let same_part = |u: &usize| {
            let maker = &self.graph.nodes()[*u];
            may_join(maker) && maker.phase == reader.phase
        };
        let mut makers: Vec<usize> = self.makers(&[node]).filter(|u| *u != unit).filter(same_part).collect();
        makers.sort_by_key(|&u| std::cmp::Reverse(self.at[u]));
        makers.dedup();
        for maker in makers {
            let mut members = [&self.members[maker][..], &self.members[unit]].concat();
            members.sort_unstable();
            if members.len() > MOST {
                continue;
            }
            let Some(between) = self.between(maker, unit) else { continue };
            if self.is_no_burden(unit, &between) && self.has_kernel(&members, target)? {
                self.join(maker, unit, members, between);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The units that make what some nodes read.
    fn makers(&self, nodes: &[usize]) -> impl Iterator<Item = usize> {
        let inputs = nodes.iter().flat_map(|&n| &self.graph.nodes()[n].inputs);
        inputs.filter_map(|&v| self.maker(self.root(v)))
    }

    /// The unit that makes a value.
    fn maker(&self, root: Value) -> Option<usize> {
        self.unit[self.graph.values()[root.index()].node]
    }

    /// True if some nodes are one op that the device has a kernel for.
    ///
    /// # Errors
    /// Never on a graph that was built by the builder; types are checked anew.
    pub(super) fn has_kernel(&self, members: &[usize], target: &dyn Target) -> Result<bool, GraphError> {
        let body = body::of(self, members)?;
        let types: Vec<TensorType> = body.inputs.iter().map(|&v| self.graph.ty(v).clone()).collect();
        Ok(target.has_kernel(&Fused::new(body.graph).into(), &types))
    }

    /// What lies between two units; none if the second needs the first in another way than directly.
    fn between(&self, first: usize, second: usize) -> Option<Between> {
        let (mut stay, mut later) = (Vec::new(), vec![first]);
        let mut marked = HashSet::from([first]);
        for &u in self.order[self.at[first] + 1..self.at[second]].iter().flatten() {
            if self.makers(&self.members[u]).any(|m| marked.contains(&m)) {
                marked.insert(u);
                later.push(u);
            } else {
                stay.push(u);
            }
        }
        let again = self.makers(&self.members[second]).any(|m| m != first && marked.contains(&m));
        (!again).then_some(Between { stay, later })
    }

    /// True if, where others run between the two units, no more must be kept for them meanwhile than before: of what the
    /// later ones read that would be gone by then, against what they make that would have waited.
    fn is_no_burden(&self, second: usize, between: &Between) -> bool {
        if between.stay.is_empty() {
            return true;
        }
        let end = self.at[second];
        let waits = |v: Value| {
            let reads = |&r: &usize| self.unit[r].is_some_and(|u| self.at[u] >= end);
            self.given_out[v.index()] || self.readers[v.index()].iter().any(reads)
        };
        let bytes = |v: &Value| self.graph.ty(*v).bytes();
        let nodes = || between.later.iter().flat_map(|&u| &self.members[u]).map(|&n| &self.graph.nodes()[n]);
        let made: usize = nodes().flat_map(|n| &n.outputs).filter(|v| waits(**v)).map(bytes).sum();
        let read: HashSet<Value> = nodes().flat_map(|n| &n.inputs).map(|&v| self.root(v)).collect();
        let from_before = |v: &Value| self.maker(*v).is_some_and(|u| !between.later.contains(&u));
        let kept: usize = read.iter().filter(|v| from_before(v) && !waits(**v)).map(bytes).sum();
        kept <= made
    }

    /// Joins nodes that are units of their own, given in the program's order; false, and nothing is done, if others lie
    /// between them that need some and feed others.
    pub(super) fn join_all(&mut self, members: &[usize]) -> bool {
        let mut joined = self.clone();
        for i in 1..members.len() {
            let Some(between) = joined.between(members[i - 1], members[i]) else { return false };
            joined.join(members[i - 1], members[i], members[..=i].to_vec(), between);
        }
        *self = joined;
        true
    }

    /// Joins two units. Those between that stay run before the new unit, those that need the first after it.
    fn join(&mut self, first: usize, second: usize, members: Vec<usize>, between: Between) {
        let (start, end) = (self.at[first], self.at[second]);
        let later = between.later.into_iter().filter(|u| *u != first);
        self.order[start..=end].fill(None);
        for (i, u) in between.stay.into_iter().chain([second]).chain(later).enumerate() {
            (self.order[start + i], self.at[u]) = (Some(u), start + i);
        }
        let gone = std::mem::take(&mut self.members[first]);
        gone.into_iter().for_each(|n| self.unit[n] = Some(second));
        self.members[second] = members;
    }
}

/// True for ops that may become part of a fused op.
fn may_join(node: &Node) -> bool {
    let apart = matches!(node.op, Op::StateWrite(_) | Op::Fused(_));
    !apart && node.op.in_place().is_empty() && !node.inputs.is_empty()
}
