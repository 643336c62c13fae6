//! Goldens on the GPU. In f32: equal to PyTorch within the bounds, and every run to every other bit for bit, recorded as
//! a graph or not. In TF32 and bf16 within bounds of their own. Without a GPU the tests say "skipped: no CUDA device".

mod golden_support;

use golden_support::Case;
use golden_support::machine::{compare, compare_in};
use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_ir::DType;
use ocelli_passes::Precision;
use ocelli_testkit::golden;
use ocelli_testkit::tolerance::{bf16_bound, gpu_f32_bound, tf32_bound};

fn executor(cuda_graph: bool, tf32: bool) -> Option<CudaExecutor> {
    match CudaExecutor::new(CudaOptions { cuda_graph, tf32, ..CudaOptions::default() }) {
        Ok(executor) => Some(executor),
        Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
            println!("skipped: no CUDA device ({e})");
            None
        }
        Err(e) => panic!("no CUDA device: {e}"),
    }
}

#[test]
fn golden_cases_on_the_gpu() {
    for g in &golden::all() {
        let case = Case::new(g);
        let run = |graph: bool| {
            let executor = executor(graph, false)?;
            let (report, computed) =
                compare(&case, &format!("cuda, graph {graph}"), &executor, gpu_f32_bound);
            report.finish();
            Some(computed)
        };
        let Some(recorded) = run(true) else { return };
        assert!(run(true).as_ref() == Some(&recorded), "golden {}: two runs differ", g.name);
        assert!(run(false).as_ref() == Some(&recorded), "golden {}: the graph changes results", g.name);
    }
}

#[test]
fn golden_cases_in_tf32() {
    let Some(executor) = executor(true, true) else { return };
    for g in &golden::all() {
        let case = Case::new(g);
        compare(&case, "cuda tf32", &executor, tf32_bound).0.finish();
        let exact = compare(&case, "cuda tf32", &executor, gpu_f32_bound).0.exceeded();
        assert!(!exact.is_empty(), "golden {}: nothing was rounded", g.name);
    }
    // The bounds can fail: a weight that is off by 5 % is found.
    let mut g = golden::all().into_iter().find(|g| g.name == "tiny").unwrap();
    g.scale("w.decoder.blocks.1.ffn.0.weight", 1.05);
    let exceeded = compare(&Case::new(&g), "cuda tf32", &executor, tf32_bound).0.exceeded();
    assert!(!exceeded.is_empty(), "a wrong weight passed");
}

#[test]
fn golden_cases_in_bf16() {
    let Some(executor) = executor(true, false) else { return };
    let precision = Some(Precision { half: DType::Bf16, stream: DType::Bf16 });
    for g in &golden::all() {
        compare_in(precision, &Case::new(g), "cuda bf16", &executor, bf16_bound).0.finish();
    }
    // The bounds can fail: a weight that is off by a third is found.
    let mut g = golden::all().into_iter().find(|g| g.name == "tiny").unwrap();
    g.scale("w.decoder.blocks.1.ffn.0.weight", 4.0 / 3.0);
    let exceeded = compare_in(precision, &Case::new(&g), "cuda bf16", &executor, bf16_bound).0.exceeded();
    assert!(!exceeded.is_empty(), "a wrong weight passed");
}
