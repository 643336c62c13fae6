//! Ways for batches to a GPU (`prefetch`, `pinned_memory`, `cuda_graph`, pictures in the executor's own memory, which is filled
//! again as soon as it is free): whatever is on, every step sees its own batch, whose indices cross the bus in a byte each. The host never waits between the steps, so it is as far ahead as it can be. Without a
//! GPU: "skipped: no CUDA device".

mod step_support;

use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_ir::StateSpec;
use ocelli_ir::executor::{Executor, HostBytes, Input};
use ocelli_passes::{PassCx, Stage, pipeline};
use ocelli_testkit::host::bytes;
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::sync::Arc;
use step_support::{MODEL, batch, rows, start};

const STEPS: usize = 24;

/// Gives pictures in memory of the executor that no copy reads any more.
fn put(pool: &mut Vec<HostBytes>, gpu: &CudaExecutor, pictures: &[u8]) -> HostBytes {
    let free = pool.iter_mut().position(HostBytes::is_free);
    let mut memory = match free {
        Some(i) => pool.swap_remove(i),
        None => gpu.host_memory(pictures.len()).unwrap(),
    };
    memory.get_mut().unwrap().copy_from_slice(pictures);
    memory
}

/// All of the state after steps over batches that differ; `shared`: pictures are in the executor's memory.
fn trained(gpu: &CudaExecutor, shared: bool) -> Vec<Vec<u8>> {
    let mut spec = StateSpec::default();
    let mut cx = PassCx::new(&mut spec, gpu.target());
    let size = Size { batch: 5, text: 7 };
    let graph = program::train(&mut cx, &MODEL, size, Pictures::Bytes, &Optimizer::ADAM).unwrap();
    let graph = pipeline::run(Stage::Whole, "train", graph, &mut cx).unwrap();
    let spec = Arc::new(spec);
    let plan = pipeline::plan("train", &graph, &spec, gpu.target()).unwrap();
    let mut state = gpu.new_state(&spec, 0).unwrap();
    for (id, tensor) in start(&spec) {
        state.write(id, &bytes(&tensor)).unwrap();
    }
    let batches: Vec<Vec<Vec<u8>>> = (0..STEPS)
        .map(|i| {
            let lens = [1 + i % 7, 1 + i / 7, 3, 7, 2];
            let given = batch(&rows(&lens), 5 * i, size.batch, size.text);
            let input = |name: &String| bytes(&given.iter().find(|(n, _)| n == name).unwrap().1);
            plan.inputs.iter().map(|(name, _)| input(name)).collect()
        })
        .collect();
    let mut program = gpu.load(plan).unwrap();
    let mut pool = Vec::new();
    for inputs in &batches {
        let mut given: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
        let pictures = put(&mut pool, gpu, &inputs[0]);
        if shared {
            given[0] = Input::Shared(&pictures);
        }
        program.run(&mut *state, &given).unwrap();
        pool.push(pictures);
    }
    assert!(pool.len() <= 4, "{} buffers for three batches under way and one", pool.len());
    spec.iter().map(|(id, _)| state.read(id).unwrap()).collect()
}

#[test]
fn every_way_of_a_batch_gives_the_same_bits() {
    let mut first = None;
    for i in 0..8 {
        let [cuda_graph, prefetch, pinned_memory] = [4, 2, 1].map(|bit| i & bit != 0);
        let options = CudaOptions { cuda_graph, prefetch, pinned_memory, ..CudaOptions::default() };
        let gpu = match CudaExecutor::new(options) {
            Ok(gpu) => gpu,
            Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
                return println!("skipped: no CUDA device ({e})");
            }
            Err(e) => panic!("no CUDA device: {e}"),
        };
        let [have, again] = [trained(&gpu, false), trained(&gpu, true)];
        let want = first.get_or_insert_with(|| have.clone());
        // Pictures, tokens, targets, weights, samples; each up to a multiple of 16 bytes.
        let bytes = 5 * 192 + 48 + 48 + 160 + 16;
        assert_eq!(gpu.crossed(), Some(2 * STEPS as u64 * bytes));
        let what = format!("graph {cuda_graph}, prefetch {prefetch}, pinned {pinned_memory}");
        assert!(have == again, "{what}: pictures in shared memory give other bits");
        assert!(have == *want, "{what}: other bits");
    }
}
