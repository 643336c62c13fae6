//! What a pass with a defect might leave behind is found, said with its reason, and shown as it was before.

use ocelli_ir::executor::Target;
use ocelli_ir::ops::Fused;
use ocelli_ir::{DType, Graph, Init, Node, Op, Slot, SlotKind, StateSpec, TensorType, View};
use ocelli_passes::{CompileError, compile, verify};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `y = sqrt(exp(x))`.
fn sound() -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([4]));
    let y = g.exp(x).and_then(|e| g.sqrt(e)).unwrap();
    g.output("y", y);
    g
}

/// The sound graph with its nodes changed.
fn damaged(damage: impl FnOnce(&mut Vec<Node>)) -> Graph {
    let g = sound();
    let mut nodes = g.nodes().to_vec();
    damage(&mut nodes);
    g.unchecked(nodes, g.values().to_vec())
}

#[track_caller]
fn refused(g: &Graph, state: &StateSpec, why: &str) {
    let found = verify::graph(g, state).expect_err(why);
    assert!(found.contains(why), "{found}");
}

#[test]
fn a_sound_graph_is_not_refused() {
    assert_eq!(verify::graph(&damaged(|_| ()), &StateSpec::default()), Ok(()));
}

#[test]
fn a_value_used_before_it_is_made_is_found() {
    let own = damaged(|nodes| nodes[1].inputs = nodes[1].outputs.clone());
    refused(&own, &StateSpec::default(), "node 1 (exp in ''): uses a value that is made later");
    let later = damaged(|nodes| nodes[1].inputs = nodes[2].outputs.clone());
    refused(&later, &StateSpec::default(), "uses a value that is made later");
}

#[test]
fn a_value_of_another_type_than_its_op_makes_is_found() {
    let g = sound();
    let mut values = g.values().to_vec();
    values[1].ty = TensorType::f32([5]);
    let wrong = g.unchecked(g.nodes().to_vec(), values);
    refused(&wrong, &StateSpec::default(), "node 1 (exp in ''): has outputs");
}

#[test]
fn an_input_named_twice_is_found() {
    let mut g = Graph::new();
    let _ = ["x", "y", "x"].map(|name| g.input(name, TensorType::f32([1])));
    refused(&g, &StateSpec::default(), "node 2 (input 'x' in ''): the name is taken");
}

#[test]
fn a_slot_of_another_type_or_of_no_state_is_found() {
    let of = |ty: TensorType| {
        let mut state = StateSpec::default();
        let slot = Slot { name: "s".into(), ty, kind: SlotKind::Parameter, init: Init::Zeros };
        let id = state.declare(slot).unwrap();
        (state, id)
    };
    let ((state, id), (other, _)) = (of(TensorType::f32([2])), of(TensorType::new(DType::Bf16, [2])));
    let mut reads = Graph::new();
    let s = reads.read(&state, id);
    reads.output("s", s);
    let mut writes = Graph::new();
    let x = writes.input("x", TensorType::f32([2]));
    writes.write(&state, id, x).unwrap();
    for g in [reads, writes] {
        assert_eq!(verify::graph(&g, &state), Ok(()));
        refused(&g, &other, "there is no slot of that type");
        refused(&g, &StateSpec::default(), "there is no slot of that type");
    }
}

#[test]
fn a_broken_body_of_a_fused_op_is_found() {
    let body = damaged(|nodes| nodes[1].inputs = nodes[2].outputs.clone());
    let wrong = damaged(|nodes| nodes[1].op = Op::Fused(Fused::new(body)));
    let found = verify::graph(&wrong, &StateSpec::default()).unwrap_err();
    assert!(found.contains("its body: node 1 (exp in ''): uses a value that is made later"), "{found}");
}

/// A device that says that it reads views until it is asked for the `limit`th time.
struct Fickle {
    asked: AtomicUsize,
    limit: usize,
}

impl Target for Fickle {
    fn name(&self) -> &str {
        "fickle"
    }
    fn has_kernel(&self, op: &Op, _: &[TensorType]) -> bool {
        !matches!(op, Op::Fused(_))
    }
    fn reads_view(&self, _: &Op, _: usize, _: &View) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1 < self.limit
    }
    fn writes_view(&self, _: &Op, _: usize, _: &View) -> bool {
        false
    }
    fn alignment(&self) -> usize {
        64
    }
}

#[test]
fn what_broke_a_program_is_named_and_the_program_before_it_is_shown() {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([3, 4]));
    let y = g.permute(x, vec![1, 0]).and_then(|t| g.exp(t)).unwrap();
    g.output("y", y);
    let shown = g.to_string();
    let target = Fickle { asked: AtomicUsize::new(0), limit: 2 };
    let error = compile("step", g, &Arc::default(), &target).unwrap_err();
    let CompileError::Broken { program, pass, what, before } = &error else { panic!("{error}") };
    assert_eq!((&program[..], *pass, before), ("step", "memory", &shown));
    assert!(what.contains("launch 0 (exp in ''): input 0 is a view that its kernel cannot read"), "{what}");
    let text = error.to_string();
    assert!(
        text.starts_with("program 'step': pass 'memory' broke the program: launch 0")
            && text.contains(&shown)
    );
}

#[test]
fn a_program_that_was_broken_from_the_start_is_shown_too() {
    let g = damaged(|nodes| nodes[1].inputs = nodes[2].outputs.clone());
    let shown = g.to_string();
    let target = Fickle { asked: AtomicUsize::new(0), limit: usize::MAX };
    let error = compile("step", g, &Arc::default(), &target).unwrap_err();
    let CompileError::Broken { pass, before, .. } = &error else { panic!("{error}") };
    assert_eq!((*pass, before), ("build", &shown));
}
