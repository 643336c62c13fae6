//! Measured choices among the library's ways to make a product, on a GPU: right, kept in a file, found there by the next
//! executor, made anew when the file is damaged. Without a GPU the tests say "skipped: no CUDA device".

mod common;

use common::executor_with;
use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_ir::executor::Executor;
use ocelli_ir::op::{Fill, Gen, Sample};
use ocelli_ir::ops::MatMul;
use ocelli_ir::{DType, TensorType};
use ocelli_testkit::case::{Case, Lie};
use std::path::{Path, PathBuf};

/// An empty folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ocelli-autotune-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.0).into_iter().flatten().map(|e| e.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tuned(folder: &Path) -> Option<CudaExecutor> {
    executor_with(CudaOptions { autotune: true, tuning: Some(folder.into()), ..CudaOptions::default() })
}

/// Products as a training step has them: of activations, for gradients of inputs and of weights; odd sizes; small ones.
fn cases(executor: &dyn Executor) -> Vec<Case> {
    let product = |[m, n, k]: [usize; 3], [ta, tb, bias]: [bool; 3]| {
        let shapes = [if ta { [k, m] } else { [m, k] }, if tb { [n, k] } else { [k, n] }];
        let mut inputs: Vec<_> = shapes.iter().map(|s| (TensorType::f32(s.to_vec()), Fill::Normal)).collect();
        if bias {
            inputs.push((TensorType::f32([n]), Fill::Normal));
        }
        Sample::no_gradient(MatMul { ta, tb, bias }, inputs)
    };
    let samples = [
        product([2056, 512, 128], [false, true, true]),
        product([2056, 128, 512], [false, false, false]),
        product([512, 128, 2056], [true, false, false]),
        product([37, 96, 24], [false, true, false]),
    ];
    let of = |half| {
        samples.iter().enumerate().map(move |(i, sample)| {
            Case::stored(executor.target(), sample, &mut Gen::new(i as u64), Lie::Dense, half)
        })
    };
    of(None).chain(of(Some(DType::Bf16))).chain(of(Some(DType::F16))).collect()
}

fn results(cases: &[Case], executor: &CudaExecutor) -> Vec<Vec<Vec<u8>>> {
    cases.iter().map(|case| case.run(executor)).collect()
}

#[test]
fn choices_are_right_and_kept() {
    let folder = Folder::new("kept");
    let Some(first) = tuned(&folder.0) else { return };
    let cases = cases(&first);
    for case in &cases {
        case.check(&first, 1.0 / 64.0, case.largest.max(1.0));
        assert!(case.run(&first) == case.run(&first), "{}: two runs differ", case.op);
    }
    let measured = first.measured();
    assert!((1..=cases.len()).contains(&measured), "each product is measured once: {measured}");
    let mark = first.tuning().unwrap();
    // The next process measures nothing, and computes the same to the bit.
    let second = tuned(&folder.0).unwrap();
    assert_eq!(second.tuning(), None);
    assert!(results(&cases, &second) == results(&cases, &first), "other choices");
    assert_eq!((second.measured(), second.tuning()), (0, Some(mark.clone())));
    assert!(second.tuned_as(&mark) && !second.tuned_as("1:0000000000000000"));
    // A damaged file is made anew.
    let files = folder.files();
    assert_eq!(files.len(), 1, "{files:?}");
    let whole = std::fs::read(&files[0]).unwrap();
    std::fs::write(&files[0], &whole[..whole.len() / 2]).unwrap();
    let third = tuned(&folder.0).unwrap();
    results(&cases, &third);
    assert_eq!(third.measured(), measured);
    assert_eq!(folder.files(), files);
}

#[test]
fn nothing_is_measured_unless_it_is_asked_for() {
    let folder = Folder::new("off");
    let options = CudaOptions { tuning: Some(folder.0.clone()), ..CudaOptions::default() };
    let Some(plain) = executor_with(options) else { return };
    results(&cases(&plain), &plain);
    assert_eq!((plain.measured(), plain.tuning(), folder.files().len()), (0, None, 0));
}
