//! Every op of the registry against its reference evaluation in f64: dense, in views, in place, and on several
//! numbers of threads.

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::DType;
use ocelli_ir::executor::Target;
use ocelli_ir::op::Gen;
use ocelli_ir::ops::registry;
use ocelli_testkit::case::{Case, Lie, is_memory};
use ocelli_testkit::tolerance::{cancels, op_bound};
use proptest::prelude::*;

// One for each test thread: the outputs of a program are gone once another has run on the same executor.
thread_local! {
    static EXECUTORS: [CpuExecutor; 3] = [1, 2, 3].map(|n| CpuExecutor::new(Some(n)).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_op_equals_its_reference(seed: u64) {
        for (name, sample) in registry() {
            let mut g = Gen::new(seed);
            let sample = sample(&mut g);
            if is_memory(&sample.op) {
                continue;
            }
            for lie in [Lie::Dense, Lie::Views, Lie::InPlace] {
                let case = Case::new(&CpuTarget, &sample, &mut g, lie);
                let floor = if cancels(name) { case.largest.max(1.0) } else { 0.0 };
                EXECUTORS.with(|e| case.check(&e[1], op_bound(name), floor));
            }
        }
    }

    #[test]
    fn every_op_takes_and_makes_16_bits_where_its_rule_says_so(seed: u64) {
        for (name, sample) in registry() {
            let mut g = Gen::new(seed);
            let sample = sample(&mut g);
            if is_memory(&sample.op) {
                continue;
            }
            for (half, lie) in [(DType::Bf16, Lie::Dense), (DType::F16, Lie::Views), (DType::Bf16, Lie::InPlace)] {
                let case = Case::stored(&CpuTarget, &sample, &mut g, lie, Some(half));
                let floor = if cancels(name) { case.largest.max(1.0) } else { 0.0 };
                EXECUTORS.with(|e| case.check(&e[1], op_bound(name), floor));
                EXECUTORS.with(|e| assert!(case.run(&e[0]) == case.run(&e[2]), "{name}"));
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit(seed: u64) {
        for (_, sample) in registry() {
            let mut g = Gen::new(seed);
            let sample = sample(&mut g);
            if is_memory(&sample.op) {
                continue;
            }
            let case = Case::new(&CpuTarget, &sample, &mut g, Lie::Views);
            let [one, two, three] = EXECUTORS.with(|e| [0, 1, 2].map(|i| case.run(&e[i])));
            prop_assert!(one == two && one == three, "{}", case.op);
        }
    }
}

#[test]
fn every_op_of_the_registry_has_a_kernel() {
    for (name, sample) in registry() {
        for seed in 0..20 {
            let sample = sample(&mut Gen::new(seed));
            let types: Vec<_> = sample.inputs.iter().map(|(ty, _)| ty.clone()).collect();
            // Which ops are fused, each device says for itself.
            let found = name == "fused" || CpuTarget.has_kernel(&sample.op, &types);
            assert_eq!(found, !is_memory(&sample.op), "{name}");
        }
    }
}

#[test]
fn views_with_gaps_are_really_tried() {
    let gaps = |wanted: &str| {
        let (_, sample) = registry().into_iter().find(|(name, _)| *name == wanted).unwrap();
        let count = |seed| {
            let mut g = Gen::new(seed);
            let sample = sample(&mut g);
            Case::new(&CpuTarget, &sample, &mut g, Lie::Views).gaps
        };
        (0..50).map(count).sum::<usize>()
    };
    for name in ["matmul", "attention", "attention_grad", "add", "concat", "contiguous", "reduce_sum"] {
        assert!(gaps(name) > 20, "{name}: {}", gaps(name));
    }
}
