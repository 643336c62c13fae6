//! Ways for batches to a GPU (`prefetch`, `pinned_memory`, `cuda_graph`; pictures in the executor's own memory, which is filled
//! again as soon as it is free, or on the device): whatever is on, every step sees its own batch, whose indices cross the bus in
//! a byte each. The host never waits between the steps, so it is as far ahead as it can be. Prints what handing a batch of 64
//! pictures of 96 x 96 over takes of the host's time. Without a GPU: "skipped: no CUDA device".

mod step_support;

use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_ir::executor::{ExecError, Executor, HostBytes, Input, Program, State, Store};
use ocelli_ir::{DType, Graph, StateSpec, TensorType, ops};
use ocelli_passes::{PassCx, Stage, pipeline};
use ocelli_testkit::host::bytes;
use ocelli_train::program::{self, Optimizer, Pictures, Size};
use std::sync::Arc;
use std::time::{Duration, Instant};
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

/// How pictures get to the device.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Bytes,
    /// In the executor's memory.
    Shared,
    /// They are there: their numbers are given.
    Rows,
}

/// All of the pictures on the device, the last batch's first, and black ones left out; with the numbers of each batch's.
fn stored(gpu: &CudaExecutor, batches: &[Vec<Vec<u8>>], bytes: usize) -> (Box<dyn Store>, Vec<Vec<u32>>) {
    let all: usize = batches.iter().map(|inputs| inputs[0].len() / bytes).sum();
    let mut store = gpu.store(all, bytes).unwrap().unwrap();
    let (mut pictures, mut numbers) = (Vec::new(), vec![vec![]; batches.len()]);
    for (inputs, numbers) in batches.iter().zip(&mut numbers).rev() {
        for picture in inputs[0].chunks(bytes) {
            let black = picture.iter().all(|&x| x == 0);
            numbers.push(if black { Input::ZEROS } else { (pictures.len() / bytes) as u32 });
            pictures.extend_from_slice(if black { &[] } else { picture });
        }
    }
    store.write(0, &pictures).unwrap();
    (store, numbers)
}

/// Runs a program on each batch, whose first input is pictures of `bytes` bytes; the host's time in `run`.
fn run_all(
    gpu: &CudaExecutor,
    program: &mut dyn Program,
    state: &mut dyn State,
    batches: &[Vec<Vec<u8>>],
    bytes: usize,
    way: Way,
) -> Result<Duration, ExecError> {
    let (mut pool, mut time) = (Vec::new(), Duration::ZERO);
    let (store, numbers) = stored(gpu, batches, bytes);
    for (inputs, rows) in batches.iter().zip(&numbers) {
        let mut given: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
        let pictures = put(&mut pool, gpu, &inputs[0]);
        match way {
            Way::Bytes => {}
            Way::Shared => given[0] = Input::Shared(&pictures),
            Way::Rows => given[0] = Input::Rows { store: &*store, rows },
        }
        let begin = Instant::now();
        program.run(state, &given)?;
        time += begin.elapsed();
        pool.push(pictures);
    }
    assert!(pool.len() <= 4, "{} buffers for three batches under way and one", pool.len());
    Ok(time)
}

/// All of the state after steps over batches that differ.
fn trained(gpu: &CudaExecutor, way: Way) -> Vec<Vec<u8>> {
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
            let mut inputs: Vec<Vec<u8>> = plan.inputs.iter().map(|(name, _)| input(name)).collect();
            inputs[0].iter_mut().for_each(|x| *x = x.wrapping_add(i as u8));
            if i % 3 == 0 {
                inputs[0][4 * 192..].fill(0);
            }
            inputs
        })
        .collect();
    assert_eq!(plan.inputs[0].0, "images");
    let mut program = gpu.load(plan).unwrap();
    run_all(gpu, &mut *program, &mut *state, &batches, 192, way).unwrap();
    spec.iter().map(|(id, _)| state.read(id).unwrap()).collect()
}

fn device(options: CudaOptions) -> Option<CudaExecutor> {
    match CudaExecutor::new(options) {
        Ok(gpu) => Some(gpu),
        Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
            println!("skipped: no CUDA device ({e})");
            None
        }
        Err(e) => panic!("no CUDA device: {e}"),
    }
}

#[test]
fn every_way_of_a_batch_gives_the_same_bits() {
    let mut first = None;
    for i in 0..8 {
        let [cuda_graph, prefetch, pinned_memory] = [4, 2, 1].map(|bit| i & bit != 0);
        let options = CudaOptions { cuda_graph, prefetch, pinned_memory, ..CudaOptions::default() };
        let Some(gpu) = device(options) else { return };
        let [have, again, there] = [Way::Bytes, Way::Shared, Way::Rows].map(|way| trained(&gpu, way));
        let want = first.get_or_insert_with(|| have.clone());
        // Pictures, tokens, targets, weights, samples; each up to a multiple of 16 bytes.
        let bytes = 5 * 192 + 48 + 48 + 160 + 16;
        // Of rows of a store, their numbers.
        let numbers = bytes - 5 * 192 + 32;
        assert_eq!(gpu.crossed(), Some(STEPS as u64 * (2 * bytes + numbers)));
        let what = format!("graph {cuda_graph}, prefetch {prefetch}, pinned {pinned_memory}");
        assert!(have == again, "{what}: pictures in shared memory give other bits");
        assert!(have == there, "{what}: pictures on the device give other bits");
        assert!(have == *want, "{what}: other bits");
    }
}

/// A program that copies its input, so that nothing but the way of a batch takes time.
#[test]
fn pictures_cost_the_host_less_from_way_to_way() {
    let Some(gpu) = device(CudaOptions::default()) else { return };
    let (rows, bytes, batches) = (64, 96 * 96 * 3, 40);
    let mut graph = Graph::new();
    let x = graph.input("images", TensorType::new(DType::U8, [rows, 96, 96, 3]));
    let y = graph.one(ops::NormalizePixels::IMAGENET, &[x]).unwrap();
    graph.output("y", y);
    let spec = Arc::new(StateSpec::default());
    let plan = pipeline::plan("pictures", &graph, &spec, gpu.target()).unwrap();
    let (mut program, mut state) = (gpu.load(plan).unwrap(), gpu.new_state(&spec, 0).unwrap());
    let picture =
        |i: usize| (0..rows * bytes).map(|j| (i * 31 + j / bytes * 13 + j * 7) as u8).collect::<Vec<u8>>();
    let batches: Vec<Vec<Vec<u8>>> = (0..batches).map(|i| vec![picture(i)]).collect();
    let mut first = None;
    for way in [Way::Bytes, Way::Shared, Way::Rows] {
        let mut run = || run_all(&gpu, &mut *program, &mut *state, &batches, bytes, way).unwrap();
        run();
        let time = run().as_secs_f64() * 1e6 / batches.len() as f64;
        println!("{way:?}: {time:.0} us of the host for a batch of {rows} pictures");
        let have = program.output(0).unwrap();
        assert!(have == *first.get_or_insert_with(|| have.clone()), "{way:?}: other bits");
    }
}
