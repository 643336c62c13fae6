//! Pass `attention` (reassociating): attention by its plain definition, its weights a tensor in memory.
//!
//! Products over the heads, a mask that is added, softmax, dropout on the weights, and another product: as it is written
//! without FlashAttention, to compare with it, for it keeps queries times keys numbers a head. It stands before
//! differentiation, so gradients follow of themselves. The same elements are dropped: their coordinates are the same.

use ocelli_ir::ops::{Attention, Broadcast, DropoutWeights, MatMul};
use ocelli_ir::{DType, Graph, GraphError, Op, Value};
use std::collections::{HashMap, HashSet};

/// What is taken from the score of a key that is not seen: its weight is 0 in f32, and f16 holds the number.
const HIDDEN: f64 = 30_000.0;

/// The graph without attention ops, but for those whose second output is read: only a gradient made before does that.
///
/// # Errors
/// Never on a graph that was built by the builder; types are inferred anew.
pub fn materialise(graph: &Graph) -> Result<Graph, GraphError> {
    let outputs = graph.outputs().iter().map(|(_, v)| v);
    let read: HashSet<Value> = graph.nodes().iter().flat_map(|n| &n.inputs).chain(outputs).copied().collect();
    let (mut out, mut values) = (Graph::new(), HashMap::new());
    for node in graph.nodes() {
        let inputs: Vec<Value> = node.inputs.iter().map(|v| values[v]).collect();
        match &node.op {
            Op::Attention(op) if !read.contains(&node.outputs[1]) => {
                let o = out.like(node, |g| plain(g, op, &inputs))?;
                values.insert(node.outputs[0], o);
            }
            _ => {
                let new = out.take(graph, node, &inputs)?;
                values.extend(node.outputs.iter().copied().zip(new));
            }
        }
    }
    graph.outputs().iter().for_each(|(name, v)| out.output(name, values[v]));
    Ok(out)
}

/// The output of an attention: `softmax(scale q k + mask) v`, `[B, Tq, H, D]`.
fn plain(g: &mut Graph, op: &Attention, inputs: &[Value]) -> Result<Value, GraphError> {
    let (qkv, extras) = inputs.split_at(3);
    let [q, k, v] = [0, 1, 2].map(|i| g.shape(qkv[i]));
    let e = op.extents(&q, &k, &v).map_err(|why| g.error("attention", why))?;
    let q = g.permute(qkv[0], vec![0, 2, 1, 3])?;
    let [k, v] = [keys(g, qkv[1], e.h)?, keys(g, qkv[2], e.h)?];
    let scores = g.one(MatMul { ta: false, tb: true, bias: false }, &[q, k])?;
    let scale = g.constant(op.scale, DType::F32);
    let mut scores = g.mul(scores, scale)?;
    if op.causal {
        let rows = count(g, e.tq)?;
        let rows = g.reshape(rows, [e.tq, 1])?;
        let mask = hidden(g, rows, e.tk)?;
        scores = g.add(scores, mask)?;
    }
    let lens = match op.kv_len {
        true => Some(g.cast(extras[0], DType::F32).and_then(|lens| g.reshape(lens, [e.b, 1, 1, 1]))?),
        false => None,
    };
    let one = g.constant(1.0, DType::F32);
    if let Some(lens) = lens {
        let last = g.sub(lens, one)?;
        let mask = hidden(g, last, e.tk)?;
        scores = g.add(scores, mask)?;
    }
    let mut weights = g.softmax(scores)?;
    if let Some(dropout) = op.dropout {
        let keyed = &extras[usize::from(op.kv_len)..];
        weights = g.one(DropoutWeights { dropout }, &[weights, keyed[0], keyed[1], keyed[2]])?;
    }
    let mut o = g.matmul(weights, v)?;
    if let Some(lens) = lens {
        // A row that sees no key gives 0.
        let any = g.minimum(lens, one)?;
        o = g.mul(o, any)?;
    }
    g.permute(o, vec![0, 2, 1, 3])
}

/// Keys or values `[B, T, G, D]` as `[B, H, T, D]`, each repeated for the heads that read it.
fn keys(g: &mut Graph, x: Value, heads: usize) -> Result<Value, GraphError> {
    let x = g.permute(x, vec![0, 2, 1, 3])?;
    let &[b, groups, t, d] = &g.shape(x)[..] else { return Err(g.error("attention", "keys have 4 axes")) };
    if groups == heads {
        return Ok(x);
    }
    let x = g.reshape(x, [b, groups, 1, t, d])?;
    let x = g.one(Broadcast { shape: [b, groups, heads / groups, t, d].into() }, &[x])?;
    g.reshape(x, [b, heads, t, d])
}

/// 0, 1, 2 and so on, in f32.
fn count(g: &mut Graph, len: usize) -> Result<Value, GraphError> {
    let zero = g.constant(0.0, DType::U32);
    let numbers = g.positions(zero, len)?;
    g.cast(numbers, DType::F32)
}

/// What is added to scores of `len` keys, where the last key that is seen is `last`, f32 `[.., 1]`: 0, or minus [`HIDDEN`].
fn hidden(g: &mut Graph, last: Value, len: usize) -> Result<Value, GraphError> {
    let keys = count(g, len)?;
    let before = g.sub(last, keys)?;
    let [none, all, much] = [0.0, -1.0, HIDDEN].map(|x| g.constant(x, DType::F32));
    let beyond = g.minimum(before, none)?;
    let beyond = g.maximum(beyond, all)?;
    g.mul(beyond, much)
}
