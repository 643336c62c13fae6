//! Groups of weights: frozen ones have no backward part, no moments and no update; rates of their own scale the step.

mod step_support;

use ocelli_config::TrainerConfig;
use ocelli_cpu::CpuTarget;
use ocelli_ir::reference::{RefState, evaluate};
use ocelli_ir::{Graph, Op, Phase, SlotKind, StateSpec};
use ocelli_passes::{PassCx, Stage, pipeline};
use ocelli_train::program::{self, Group, Optimizer, Pictures, Size};
use std::collections::HashMap;
use step_support::{MODEL, batch, rows, start};

fn group(pattern: &str, rate: Option<f64>) -> Group {
    let config = TrainerConfig { freeze: Some(pattern.into()), ..TrainerConfig::default() };
    Group { pattern: config.frozen().unwrap().remove(0), rate }
}

/// State before and after a step with these groups, and the program.
fn step(groups: Vec<Group>) -> (StateSpec, [RefState<f64>; 2], Graph) {
    let mut spec = StateSpec::default();
    let optimizer = Optimizer { groups, ..Optimizer::ADAM };
    let mut cx = PassCx::new(&mut spec, &CpuTarget);
    let graph =
        program::train(&mut cx, &MODEL, Size { batch: 5, text: 7 }, Pictures::Bytes, &optimizer).unwrap();
    let graph = pipeline::run(Stage::Whole, "train", graph, &mut cx).unwrap();
    let inputs: HashMap<_, _> = batch(&rows(&[3, 7, 1, 2, 4]), 0, 5, 7).into_iter().collect();
    let before = start(&spec);
    let mut after = before.clone();
    evaluate(&graph, &inputs, &mut after).unwrap();
    (spec, [before, after], graph)
}

#[test]
fn a_frozen_tower_has_no_backward_part_and_no_moments() {
    let (_, _, all) = step(vec![]);
    let (spec, [before, after], some) = step(vec![group("vision_encoder.*", None)]);
    let backward = |g: &Graph, part: &str| {
        g.nodes().iter().filter(|n| n.phase == Phase::Backward && n.scope.starts_with(part)).count()
    };
    assert!(backward(&all, "vision_encoder") > 10);
    assert_eq!(backward(&some, "vision_encoder"), 0);
    // But for the gradient that nobody asks for any more, the decoder's is as it was.
    let (many, few) = (backward(&all, "decoder"), backward(&some, "decoder"));
    assert!(few > 30 && (few..=few + 2).contains(&many), "{few} of {many}");
    for (id, slot) in spec.iter() {
        let frozen = slot.name.starts_with("vision_encoder.");
        match slot.kind {
            SlotKind::Parameter => assert_eq!(before[&id] == after[&id], frozen, "{}", slot.name),
            SlotKind::Moment => assert!(!frozen, "{}", slot.name),
            _ => {}
        }
    }
}

#[test]
fn a_rate_of_its_own_scales_the_step() {
    // Earlier patterns come first.
    let groups = vec![group("*.lm_head.*", Some(0.25)), group("decoder.*", Some(4.0))];
    let (spec, [start, plain], _) = step(vec![]);
    let (_, [_, grouped], _) = step(groups);
    let moved = |after: &RefState<f64>, id| {
        let pair = start[&id].as_real().iter().zip(after[&id].as_real());
        pair.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let mut seen = [0; 3];
    for (id, slot) in spec.iter().filter(|(_, s)| s.kind == SlotKind::Parameter) {
        let (which, want) = match &*slot.name {
            name if name.contains(".lm_head.") => (0, 0.25),
            name if name.starts_with("decoder.") => (1, 4.0),
            _ => (2, 1.0),
        };
        seen[which] += 1;
        let factor = moved(&grouped, id) / moved(&plain, id);
        assert!((factor - want).abs() < 1e-6, "{}: {factor}", slot.name);
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}

#[test]
fn vectors_do_not_decay_however_many_axes_they_have() {
    let mut decays = HashMap::new();
    let mut spec = StateSpec::default();
    let optimizer = Optimizer { weight_decay: 0.1, ..Optimizer::ADAM };
    let mut cx = PassCx::new(&mut spec, &CpuTarget);
    let graph =
        program::train(&mut cx, &MODEL, Size { batch: 2, text: 3 }, Pictures::Bytes, &optimizer).unwrap();
    for node in graph.nodes() {
        if let Op::Adam(op) = &node.op
            && let Op::StateRead(read) = &graph.producer(node.inputs[0]).op
        {
            decays.insert(spec.get(read.slot).name.clone(), op.weight_decay > 0.0);
        }
    }
    let of = |name: &str| decays[name];
    assert!(!of("vision_encoder.cls_token") && !of("vision_encoder.blocks.0.ln1.weight"));
    assert!(of("vision_encoder.pos_embedding") && of("decoder.token_embedding_table.weight"));
    assert!(of("vision_encoder.patch_embedding.conv.weight"));
}

#[test]
fn nothing_left_to_train_is_an_error() {
    let optimizer = Optimizer { groups: vec![group("*", None)], ..Optimizer::ADAM };
    let mut spec = StateSpec::default();
    let mut cx = PassCx::new(&mut spec, &CpuTarget);
    let size = Size { batch: 1, text: 1 };
    let error = program::train(&mut cx, &MODEL, size, Pictures::Bytes, &optimizer).unwrap_err();
    assert!(error.to_string().contains("leaves no weight to train"), "{error}");
}
