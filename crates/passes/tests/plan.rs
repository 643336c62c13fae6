//! Plans: what may be left out is left out, state is updated in place only where that is sound, and the verifier
//! finds every plan that was broken on purpose.

use ocelli_ir::executor::Target;
use ocelli_ir::ops::{Adam, Increment, Split, UpdateSlice};
use ocelli_ir::plan::{Place, Plan};
use ocelli_ir::{DType, Graph, Init, Op, Slot, SlotId, SlotKind, StateSpec, TensorType, Value, View};
use ocelli_passes::{compile, verify};
use std::sync::Arc;

/// A device that reads and writes every view, or none.
struct Device {
    views: bool,
}

impl Target for Device {
    fn name(&self) -> &str {
        "test"
    }
    fn has_kernel(&self, op: &Op, _: &[TensorType]) -> bool {
        !matches!(op, Op::Fused(_))
    }
    fn reads_view(&self, op: &Op, _: usize, _: &View) -> bool {
        self.views || op.name() == "contiguous"
    }
    fn writes_view(&self, _: &Op, _: usize, _: &View) -> bool {
        self.views
    }
    fn alignment(&self) -> usize {
        64
    }
}

const ALL: Device = Device { views: true };
const NONE: Device = Device { views: false };

fn slot(state: &mut StateSpec, name: &str, ty: TensorType) -> SlotId {
    state.declare(Slot { name: name.into(), ty, kind: SlotKind::Parameter, init: Init::Zeros }).unwrap()
}

fn names(plan: &Plan) -> Vec<&'static str> {
    plan.launches.iter().map(|l| l.op.name()).collect()
}

/// A chain of `n` element-wise ops.
fn chain(g: &mut Graph, x: Value, n: usize) -> Value {
    (0..n).fold(x, |x, _| g.exp(x).unwrap())
}

#[test]
fn scratch_memory_is_shared_by_what_is_never_alive_together() {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([1024]));
    let y = chain(&mut g, x, 20);
    g.output("y", y);
    let plan = compile("chain", g, &Arc::default(), &NONE).unwrap();
    assert_eq!(plan.launches.len(), 20);
    assert_eq!(plan.arena_bytes, 2 * 4096, "two buffers serve a chain");
}

#[test]
fn what_nothing_needs_is_dropped() {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([4]));
    let _unused = chain(&mut g, x, 3);
    let y = g.exp(x).unwrap();
    g.output("y", y);
    let plan = compile("dead", g, &Arc::default(), &NONE).unwrap();
    assert_eq!(names(&plan), ["exp"]);
}

#[test]
fn views_cost_a_copy_only_where_a_kernel_cannot_read_them() {
    let build = || {
        let mut g = Graph::new();
        let x = g.input("x", TensorType::f32([3, 4]));
        let t = g.permute(x, vec![1, 0]).unwrap();
        let (a, b) = (g.exp(t).unwrap(), g.sqrt(t).unwrap());
        let y = g.add(a, b).unwrap();
        g.output("y", y);
        g
    };
    let plan = |target| compile("views", build(), &Arc::default(), target).unwrap();
    assert_eq!(names(&plan(&ALL)), ["exp", "sqrt", "add"]);
    assert_eq!(names(&plan(&NONE)), ["contiguous", "exp", "sqrt", "add"], "one copy serves both readers");
}

#[test]
fn a_reshape_that_is_no_view_costs_one_copy() {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([3, 4]));
    let t = g.permute(x, vec![1, 0]).unwrap();
    let flat = g.reshape(t, [12]).unwrap();
    let y = g.exp(flat).unwrap();
    g.output("y", y);
    assert_eq!(names(&compile("reshape", g, &Arc::default(), &ALL).unwrap()), ["contiguous", "exp"]);
}

#[test]
fn parts_are_written_straight_into_their_concat() {
    let build = || {
        let mut g = Graph::new();
        let x = g.input("x", TensorType::f32([2, 6]));
        let parts = g.many(Split { axis: 1, parts: 3 }, &[x]).unwrap();
        let parts: Vec<Value> = parts.into_iter().map(|p| g.exp(p).unwrap()).collect();
        let joined = g.concat(&parts, 1).unwrap();
        let y = g.exp(joined).unwrap();
        g.output("y", y);
        g
    };
    let plan = |target| compile("concat", build(), &Arc::default(), target).unwrap();
    assert_eq!(names(&plan(&ALL)), ["exp", "exp", "exp", "exp"]);
    assert!(names(&plan(&NONE)).contains(&"concat"));
}

fn adam(g: &mut Graph, state: &StateSpec, slots: [SlotId; 3], grad: Value) -> Value {
    let one = g.constant(1.0, DType::F32);
    let step = g.constant(1.0, DType::U32);
    let op = Adam { beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.0, decoupled: false };
    let old: Vec<Value> = slots.iter().map(|&s| g.read(state, s)).collect();
    let new = g.many(op, &[old[0], old[1], old[2], grad, one, one, step, step]).unwrap();
    slots.iter().zip(&new).for_each(|(&s, &v)| g.write(state, s, v).unwrap());
    old[0]
}

#[test]
fn state_is_updated_in_place_unless_someone_reads_the_old_contents_later() {
    let ty = TensorType::f32([8]);
    let build = |late_reader: bool| {
        let mut state = StateSpec::default();
        let slots = ["p", "m", "v"].map(|n| slot(&mut state, n, ty.clone()));
        let mut g = Graph::new();
        let x = g.input("x", ty.clone());
        let old = adam(&mut g, &state, slots, x);
        if late_reader {
            let y = g.exp(old).unwrap();
            g.output("y", y);
        }
        compile("adam", g, &Arc::new(state), &NONE).unwrap()
    };
    let in_place = build(false);
    assert!(!names(&in_place).contains(&"state_write"), "{in_place}");
    let update = in_place.launches.iter().find(|l| l.op.name() == "adam").unwrap();
    assert!(update.outputs.iter().all(|o| matches!(o.place, Place::State(_))));
    // The late reader needs the old parameter: it alone is written at the end.
    assert_eq!(names(&build(true)).iter().filter(|n| **n == "state_write").count(), 1);
}

#[test]
fn slots_can_change_places() {
    let mut state = StateSpec::default();
    let [a, b] = ["a", "b"].map(|n| slot(&mut state, n, TensorType::f32([4])));
    let mut g = Graph::new();
    let (x, y) = (g.read(&state, a), g.read(&state, b));
    g.write(&state, a, y).unwrap();
    g.write(&state, b, x).unwrap();
    g.output("old a", x);
    let plan = compile("swap", g, &Arc::new(state), &NONE).unwrap();
    // The verifier has seen that each write still finds what it is to write.
    assert_eq!(names(&plan).iter().filter(|n| **n == "state_write").count(), 2);
    assert!(matches!(plan.outputs[0].1.place, Place::Arena(_)), "the old contents are kept for the host");
}

#[test]
fn a_cache_is_updated_in_its_slot_and_read_there() {
    let mut state = StateSpec::default();
    let cache = slot(&mut state, "cache", TensorType::f32([8, 4]));
    let mut g = Graph::new();
    let (row, at) = (g.input("row", TensorType::f32([1, 4])), g.input("at", TensorType::u32([])));
    let old = g.read(&state, cache);
    let new = g.one(UpdateSlice { axis: 0 }, &[old, row, at]).unwrap();
    g.write(&state, cache, new).unwrap();
    let y = g.exp(new).unwrap();
    g.output("y", y);
    let plan = compile("cache", g, &Arc::new(state), &NONE).unwrap();
    assert_eq!(names(&plan), ["update_slice", "exp"]);
    assert_eq!(plan.launches[1].inputs[0].place, Place::State(cache));
}

/// `x` counts up, `y` gets what `x` was; beside them scratch memory, of more than 4 MB if `large`.
fn follower(large: bool) -> Plan {
    let mut state = StateSpec::default();
    let [x, y] = ["x", "y"].map(|n| slot(&mut state, n, TensorType::u32([])));
    let mut g = Graph::new();
    let beside = g.input("beside", TensorType::f32([if large { 2 << 20 } else { 16 }]));
    let beside = chain(&mut g, beside, 3);
    g.output("beside", beside);
    let old = g.read(&state, x);
    let new = g.one(Increment, &[old]).unwrap();
    g.write(&state, x, new).unwrap();
    g.write(&state, y, old).unwrap();
    compile("follower", g, &Arc::new(state), &NONE).unwrap()
}

#[test]
fn a_write_may_read_the_old_contents_of_a_slot_that_is_updated() {
    for large in [false, true] {
        let plan = follower(large);
        assert_eq!(plan.arena_bytes > 4 << 20, large);
        let increment = plan.launches.iter().find(|l| l.op.name() == "increment").unwrap();
        assert!(matches!(increment.outputs[0].place, Place::Arena(_)), "{plan}");
        // The order of the writes does not matter: y is written first, or from a copy of x.
        assert_eq!(names(&plan).iter().filter(|n| **n == "state_write").count(), 2, "{plan}");
    }
}

#[test]
fn the_verifier_follows_state_at_any_size() {
    for large in [false, true] {
        let broken = |damage: fn(&mut Plan)| {
            let mut plan = follower(large);
            damage(&mut plan);
            verify::plan(&plan, &NONE).unwrap_err()
        };
        let at = |p: &Plan| p.launches.iter().position(|l| l.op.name() == "increment").unwrap();
        assert_eq!(at(&follower(large)), 3);
        // Updated in place although a write still needs the old contents.
        let lost = broken(|p| {
            let (to, from) = (p.launches[3].outputs[0].contents, p.launches[3].inputs[0].place);
            for o in p.launches.iter_mut().flat_map(|l| l.inputs.iter_mut().chain(&mut l.outputs)) {
                if o.contents == to {
                    o.place = from;
                }
            }
            p.launches.retain(|l| l.inputs[0].contents != to);
        });
        assert!(lost.contains("after it was lost"), "{lost}");
        // The host would get the old contents for the new ones.
        let early = broken(|p| {
            let mut late = p.launches[p.launches.len() - 1].outputs[0].clone();
            late.contents += 1000;
            p.outputs.push(("late".into(), late));
        });
        assert!(early.contains("output 'late' reads u32[] before it is written"), "{early}");
        // A reader before the writer.
        let early = broken(|p| {
            let written = p.launches[p.launches.len() - 1].outputs[0].clone();
            p.launches[3].inputs[0] = written;
        });
        assert!(early.contains("after it was read"), "{early}");
    }
}

/// A plan with scratch buffers, state in place and a counter.
fn sound() -> Plan {
    let mut state = StateSpec::default();
    let slots = ["p", "m", "v"].map(|n| slot(&mut state, n, TensorType::f32([32])));
    let count = slot(&mut state, "count", TensorType::u32([]));
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([32]));
    let a = chain(&mut g, x, 2);
    let b = g.mul(a, x).unwrap();
    let grad = g.add(a, b).unwrap();
    adam(&mut g, &state, slots, grad);
    let n = g.read(&state, count);
    let n = g.one(Increment, &[n]).unwrap();
    g.write(&state, count, n).unwrap();
    g.output("grad", grad);
    compile("sound", g, &Arc::new(state), &NONE).unwrap()
}

#[test]
fn the_verifier_finds_what_was_broken() {
    type Break = fn(&mut Plan);
    let index = |p: &Plan, name: &str| p.launches.iter().position(|l| l.op.name() == name).unwrap();
    assert_eq!(index(&sound(), "exp"), 0);
    let breaks: [(&str, &str, Break); 8] = [
        ("all scratch in one place", "overlaps another operand", |p| {
            for l in &mut p.launches {
                for o in l.inputs.iter_mut().chain(&mut l.outputs) {
                    if let Place::Arena(at) = &mut o.place {
                        *at = 0;
                    }
                }
            }
        }),
        ("an unaligned offset", "offset 4 is not aligned", |p| {
            p.launches[0].outputs[0].place = Place::Arena(4);
        }),
        ("an operand past the end", "ends at byte", |p| {
            p.launches[0].outputs[0].place = Place::Arena(1 << 20);
        }),
        ("a launch too early", "before it is written", |p| p.launches.swap(0, 1)),
        ("a launch left out", "before it is written", |p| _ = p.launches.remove(1)),
        ("unordered branches", "share memory unordered", |p| p.launches[1].branch = 1),
        ("waiting for the future", "waits for a later launch", |p| p.launches[0].after = vec![2]),
        ("a wrong shape", "its rule says", |p| p.launches[0].outputs[0].view = View::contiguous([16])),
    ];
    assert_eq!(verify::plan(&sound(), &NONE), Ok(()));
    for (what, reason, damage) in breaks {
        let mut plan = sound();
        damage(&mut plan);
        let why = verify::plan(&plan, &NONE).expect_err(what);
        assert!(why.contains(reason), "{what}: {why}");
    }
}

#[test]
fn a_slot_written_twice_is_refused() {
    let mut state = StateSpec::default();
    let s = slot(&mut state, "s", TensorType::f32([2]));
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([2]));
    g.write(&state, s, x).unwrap();
    g.write(&state, s, x).unwrap();
    let error = compile("twice", g, &Arc::new(state), &NONE).unwrap_err().to_string();
    assert!(error.contains("written twice"), "{error}");
}
