//! A training step as JSON.

use super::device::Peaks;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_train::explain::{Explained, Stage};
use ocelli_train::program::Size;
use serde_json::{Value, json};

/// The whole explanation.
pub fn object(programs: &[Explained], peaks: &Peaks, size: Size) -> Value {
    let state: Vec<Value> = programs.first().map_or(vec![], |p| {
        let slot = |s: &ocelli_ir::Slot| {
            json!({"name": s.name, "type": s.ty.to_string(), "bytes": s.ty.bytes(), "kind": format!("{:?}", s.kind)})
        };
        p.plan.state.iter().map(|(_, s)| slot(s)).collect()
    });
    json!({
        "batch": size.batch, "length": size.text,
        "roofline": peaks.object(),
        "state": state,
        "programs": programs.iter().map(|p| program(p, peaks)).collect::<Vec<_>>(),
    })
}

fn program(p: &Explained, peaks: &Peaks) -> Value {
    let stage = |s: &Stage| json!({"pass": s.name, "nodes": s.nodes, "flops": s.flops, "bytes": s.bytes, "graph": s.text});
    let (flops, bytes) = p.plan.cost();
    json!({
        "name": p.plan.name,
        "hash": format!("{:016x}", p.plan.hash()),
        "passes": p.stages.iter().map(stage).collect::<Vec<_>>(),
        "flops": flops, "bytes": bytes,
        "seconds": p.plan.launches.iter().map(|l| peaks.seconds(l)).sum::<f64>(),
        "scratch_bytes": p.plan.arena_bytes,
        "scratch_in_use": p.plan.memory_timeline(),
        "launches": p.plan.launches.iter().map(|l| launch(&p.plan, l, peaks)).collect::<Vec<_>>(),
    })
}

fn launch(plan: &Plan, l: &Launch, peaks: &Peaks) -> Value {
    let operand = |o: &Operand| {
        let place = match o.place {
            Place::Arena(at) => json!({"scratch": at}),
            Place::State(slot) => json!({"state": plan.state.get(slot).name}),
            Place::Input(i) => json!({"input": plan.inputs[i].0}),
        };
        json!({"type": o.ty().to_string(), "at": place})
    };
    let (flops, bytes) = l.cost();
    json!({
        "op": l.op.to_string(), "module": &*l.scope, "flops": flops, "bytes": bytes, "seconds": peaks.seconds(l),
        "inputs": l.inputs.iter().map(operand).collect::<Vec<_>>(),
        "outputs": l.outputs.iter().map(operand).collect::<Vec<_>>(),
    })
}
