//! Every kernel waits for the launch before it, and compiles for every architecture that is supported. The latter needs the
//! compiler (NVRTC), no GPU: without it the test says so and checks nothing.

mod common;

use common::bodies::{bodies, layers};
use ocelli_cuda::{CudaTarget, Machine, NvrtcFault, compile, kernel_sources};
use ocelli_ir::executor::Target;
use ocelli_ir::op::Gen;
use ocelli_ir::ops::registry;
use ocelli_ir::{DType, Op};
use ocelli_testkit::case::{Case, Lie, is_memory};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ARCHITECTURES: [&str; 5] = ["sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"];

/// GPUs that kernels are made for: without the matrix instructions of compute capability 9.0, and with them.
fn machine(arch: &str) -> Machine {
    let wgmma = arch == "sm_90a";
    let plain = Machine::new(132);
    Machine { wgmma, shared: if wgmma { 227 * 1024 } else { plain.shared }, ..plain }
}

/// Kernels' own texts start behind this.
const PRELUDE_END: &str = "griddepcontrol.launch_dependents;";

fn sources(machine: Machine) -> BTreeSet<String> {
    let target = CudaTarget::new(machine);
    let mut all = BTreeSet::new();
    for (_, sample) in registry() {
        let sample = sample(&mut Gen::new(1));
        if is_memory(&sample.op) {
            continue;
        }
        for half in [None, Some(DType::Bf16), Some(DType::F16)] {
            let lie = if half.is_none() { Lie::Views } else { Lie::Dense };
            let case = Case::stored(&target, &sample, &mut Gen::new(3), lie, half);
            // Which ops are fused, each device says for itself.
            if matches!(case.op, Op::Fused(_)) && !target.has_kernel(&case.op, &case.types()) {
                continue;
            }
            all.extend(kernel_sources(&case.plan, machine).unwrap());
        }
    }
    for half in [DType::Bf16, DType::F16] {
        for sample in bodies(half).into_iter().chain(layers(half)) {
            let case = Case::new(&target, &sample, &mut Gen::new(3), Lie::Dense);
            if !target.has_kernel(&case.op, &case.types()) {
                continue;
            }
            all.extend(kernel_sources(&case.plan, machine).unwrap());
        }
    }
    all
}

/// What is wrong with how the kernels of a text start: see `enter` in the prelude.
fn faults(text: &str) -> Vec<String> {
    let code: String = text.lines().map(|l| format!("{}\n", l.split("//").next().unwrap_or(""))).collect();
    let mut faults = Vec::new();
    for early in ["__restrict__", "global.nc", "__ldg"] {
        faults.extend(code.contains(early).then(|| format!("{early} may be read before the wait")));
    }
    for kernel in code.split("__global__").skip(1) {
        let (head, body) = kernel.split_once("{\n").unwrap_or((kernel, ""));
        let before = body.split_once("enter();").map(|(before, _)| before.lines().map(str::trim));
        let safe = |l: &str| l.is_empty() || (l.starts_with("const Entry"));
        if !before.is_some_and(|mut lines| lines.all(safe)) {
            faults.push(format!("a kernel does not start with enter(): {}", head.trim()));
        }
    }
    faults
}

/// All files below a folder whose names end so.
fn files(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|p| p.is_dir());
    let wanted = |p: &PathBuf| p.extension().is_some_and(|e| ends.iter().any(|end| e == *end));
    let below = folders.iter().flat_map(|f| self::files(f, ends)).collect::<Vec<_>>();
    files.into_iter().filter(wanted).chain(below).collect()
}

#[test]
fn every_kernel_waits_for_the_launch_before_it() {
    let mut failed = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let texts = files(&src, &["cu", "cuh"]);
    assert!(texts.len() > 20, "{}", texts.len());
    for path in texts {
        failed.extend(
            faults(&std::fs::read_to_string(&path).unwrap())
                .into_iter()
                .map(|f| format!("{}: {f}", path.display())),
        );
    }
    // Those that are put together.
    for source in sources(machine("sm_90a")) {
        failed.extend(faults(&source));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));

    // It can fail.
    let kernel = |body: &str| {
        format!("extern \"C\" __global__ void __launch_bounds__(32) k(const T* x) {{\n{body}}}\n")
    };
    assert_eq!(faults(&kernel("    // First.\n    enter();\n    x[0];\n")), [""; 0]);
    assert_eq!(faults(&kernel("    const Entry a = table[0];\n    enter();\n")), [""; 0]);
    for wrong in [
        "",
        "    x[0];\n    enter();\n",
        "    if (x) return;\n    enter();\n",
        "    // enter();\n",
        "    enter();\n    __ldg(x);\n",
    ] {
        assert_eq!(faults(&kernel(wrong)).len(), 1, "{wrong}");
    }
    assert_eq!(faults(&[kernel("    x[0];\n"), kernel("    enter();\n")].concat()).len(), 1);
}

#[test]
fn every_kernel_compiles_for_every_architecture() {
    let [plain, wgmma] = ["sm_80", "sm_90a"].map(|arch| sources(machine(arch)));
    assert!(plain.len() > 60, "{}", plain.len());
    assert!(wgmma.difference(&plain).count() > 10, "no kernels of their own for compute capability 9.0");
    if let Err(NvrtcFault::Missing(why)) = compile("", "sm_80") {
        println!("skipped: {why}");
        return;
    }
    let mut failed = Vec::new();
    for arch in ARCHITECTURES {
        for source in if machine(arch).wgmma { &wgmma } else { &plain } {
            match compile(source, arch) {
                Ok(cubin) => assert!(cubin.len() > 64),
                // A compiler older than the architecture says so.
                Err(NvrtcFault::Refused { log, .. })
                    if log.contains("invalid value for --gpu-architecture") =>
                {
                    break;
                }
                Err(e) => failed.push(format!("{}\n{e}", source.split(PRELUDE_END).last().unwrap_or(""))),
            }
        }
    }
    assert!(failed.is_empty(), "{} kernels:\n{}", failed.len(), failed.join("\n\n"));
}
