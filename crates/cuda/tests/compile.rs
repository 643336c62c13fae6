//! Every kernel compiles for every architecture that is supported. Needs the compiler (NVRTC), no GPU: without it the
//! test says so and checks nothing.

mod common;

use common::bodies::bodies;
use ocelli_cuda::{CudaTarget, Machine, NvrtcFault, compile, kernel_sources};
use ocelli_ir::executor::Target;
use ocelli_ir::op::Gen;
use ocelli_ir::ops::registry;
use ocelli_ir::{DType, Op};
use ocelli_testkit::case::{Case, Lie, is_memory};
use std::collections::BTreeSet;

const ARCHITECTURES: [&str; 5] = ["sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"];

/// GPUs that kernels are made for: without the matrix instructions of compute capability 9.0, and with them.
fn machine(arch: &str) -> Machine {
    Machine { wgmma: arch == "sm_90a", ..Machine::new(132) }
}

/// Kernels' own texts start behind this.
const PRELUDE_END: &str = "griddepcontrol.launch_dependents";

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
        for sample in bodies(half) {
            let case = Case::new(&target, &sample, &mut Gen::new(3), Lie::Dense);
            if !target.has_kernel(&case.op, &case.types()) {
                continue;
            }
            all.extend(kernel_sources(&case.plan, machine).unwrap());
        }
    }
    all
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
