//! Pass `rounded` (exact): a weight that a program trains and multiplies in 16 bits is kept in 16 bits as well.
//!
//! `precision` casts it at the start of the program. Here what it is cast to becomes state: products read a slot of kind
//! [`SlotKind::Rounded`], and who writes the weight writes this slot, by a cast behind the optimiser that a device can make
//! together with it. Programs that only read a weight use the slot if training has one. The verifier sees to it that no plan
//! writes the one without the other.

use ocelli_ir::{DType, Graph, GraphError, Init, Node, Op, Slot, SlotId, SlotKind, StateSpec, Value};
use std::collections::{HashMap, HashSet};

/// The graph that keeps trained weights in 16 bits too. Slots may be added.
///
/// # Errors
/// If a slot's name is taken.
pub fn rounded(graph: &Graph, state: &mut StateSpec) -> Result<Graph, GraphError> {
    let written: HashSet<SlotId> = graph
        .nodes()
        .iter()
        .filter_map(|n| if let Op::StateWrite(op) = &n.op { Some(op.slot) } else { None })
        .collect();
    let mut out = Graph::new();
    let mut slots: HashMap<Value, SlotId> = HashMap::new();
    for node in graph.nodes() {
        let Some((weight, to)) = cast_of_weight(graph, node, state) else { continue };
        let slot = match written.contains(&weight) {
            true => Some(declare(state, weight, to).map_err(|m| out.error("state", m))?),
            false => state.rounded(weight).find(|(_, s)| s.ty.dtype == to).map(|(id, _)| id),
        };
        slots.extend(slot.map(|slot| (node.outputs[0], slot)));
    }
    let mut values: HashMap<Value, Value> = HashMap::new();
    for node in graph.nodes() {
        if let Some(&slot) = node.outputs.first().and_then(|v| slots.get(v)) {
            let shape = graph.ty(node.outputs[0]).shape.clone();
            let read = out.like(node, |g| {
                let weight = g.read(state, slot);
                if g.ty(weight).shape == shape { Ok(weight) } else { g.reshape(weight, shape) }
            })?;
            values.insert(node.outputs[0], read);
            continue;
        }
        let inputs: Vec<Value> = node.inputs.iter().map(|v| values[v]).collect();
        let new = out.take(graph, node, &inputs)?;
        values.extend(node.outputs.iter().copied().zip(new));
        if let Op::StateWrite(op) = &node.op {
            for (slot, half) in state.rounded(op.slot) {
                out.like(node, |g| {
                    let value = g.cast(inputs[0], half.ty.dtype)?;
                    g.write(state, slot, value)
                })?;
            }
        }
    }
    graph.outputs().iter().for_each(|(name, v)| out.output(name, values[v]));
    Ok(out)
}

/// The weight that a node casts to 16 bits, perhaps in another shape, and to which.
fn cast_of_weight(graph: &Graph, node: &Node, state: &StateSpec) -> Option<(SlotId, DType)> {
    let Op::Cast(cast) = &node.op else { return None };
    let from = graph.producer(node.inputs[0]);
    let from = if let Op::Reshape(_) = from.op { graph.producer(from.inputs[0]) } else { from };
    let Op::StateRead(read) = &from.op else { return None };
    let weight = state.get(read.slot).kind == SlotKind::Parameter && read.ty.dtype == DType::F32;
    (weight && matches!(cast.to, DType::Bf16 | DType::F16)).then_some((read.slot, cast.to))
}

/// The slot that holds a weight in 16 bits.
fn declare(state: &mut StateSpec, weight: SlotId, to: DType) -> Result<SlotId, String> {
    let of = state.get(weight);
    let ty = ocelli_ir::TensorType::new(to, of.ty.shape.clone());
    let name = format!("{}.{to}", of.name);
    state.declare(Slot { name, ty, kind: SlotKind::Rounded(weight), init: Init::Zeros })
}
