//! Goldens on the GPU, in f32: equal to PyTorch within the bounds, and every run to every other bit for bit, recorded as
//! a graph or not. Without a GPU the tests say "skipped: no CUDA device".

mod golden_support;

use golden_support::Case;
use golden_support::machine::compare;
use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_testkit::golden;
use ocelli_testkit::tolerance::gpu_f32_bound;

fn executor(cuda_graph: bool) -> Option<CudaExecutor> {
    match CudaExecutor::new(CudaOptions { cuda_graph, ..CudaOptions::default() }) {
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
            let executor = executor(graph)?;
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
