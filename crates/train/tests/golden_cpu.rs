//! Goldens on the CPU executor, in f32, with one thread and with two: equal to PyTorch within the bounds, and to
//! each other bit for bit. The programs are those that training runs. In bf16, within bounds of its own.

mod golden_support;

use golden_support::Case;
use golden_support::machine::{Computed, compare, compare_in};
use ocelli_cpu::CpuExecutor;
use ocelli_ir::DType;
use ocelli_passes::Precision;
use ocelli_testkit::golden;
use ocelli_testkit::tolerance::{Kind, bf16_bound, f32_bound};

/// Runs a case, within the bounds.
fn check(case: &Case, threads: usize) -> Computed {
    let executor = CpuExecutor::new(Some(threads)).unwrap();
    let (report, computed) = compare(case, &format!("cpu {threads} threads"), &executor, f32_bound);
    report.finish();
    computed
}

#[test]
fn golden_cases_on_the_cpu_executor() {
    for g in &golden::all() {
        let case = Case::new(g);
        let one = check(&case, 1);
        assert!(one == check(&case, 2), "golden {}: one and two threads differ", g.name);
    }
}

/// The bounds can fail: a weight that is off by one part in ten thousand is found.
#[test]
fn golden_bounds_find_a_slightly_wrong_weight() {
    let mut g = golden::all().into_iter().find(|g| g.name == "tiny").unwrap();
    g.scale("w.decoder.blocks.1.ffn.0.weight", 1.0 + 1e-4);
    let case = Case::new(&g);
    let exceeded = compare(&case, "cpu", &CpuExecutor::new(Some(1)).unwrap(), f32_bound).0.exceeded();
    assert!(exceeded.iter().any(|(kind, _)| *kind == Kind::Value), "a wrong weight passed: {exceeded:?}");
}

/// bf16 everywhere that mixed precision has it, the residual stream included.
const BF16: Option<Precision> = Some(Precision { half: DType::Bf16, stream: DType::Bf16 });

#[test]
fn golden_cases_in_bf16() {
    let executor = CpuExecutor::new(Some(2)).unwrap();
    for g in &golden::all() {
        compare_in(BF16, &Case::new(g), "cpu bf16", &executor, bf16_bound).0.finish();
    }
    // The bounds can fail: a weight that is off by a third is found.
    let mut g = golden::all().into_iter().find(|g| g.name == "tiny").unwrap();
    g.scale("w.decoder.blocks.1.ffn.0.weight", 4.0 / 3.0);
    let exceeded = compare_in(BF16, &Case::new(&g), "cpu bf16", &executor, bf16_bound).0.exceeded();
    assert!(!exceeded.is_empty(), "a wrong weight passed");
}
