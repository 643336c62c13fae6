//! What a device can do at most: the roofline (Williams et al. 2009).

use crate::args::Device;
use anyhow::Context;
use ocelli_config::Config;
use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_cuda::{CudaTarget, Machine};
use ocelli_ir::executor::{Executor, Target};
use ocelli_ir::ops::MatMul;
use ocelli_ir::plan::{Launch, Operand};
use ocelli_ir::{DType, Graph, GraphError, Op, StateSpec, TensorType, Value};
use ocelli_passes::compile;
use std::sync::Arc;

impl Device {
    /// What the passes may ask about it, under a configuration.
    pub fn target(self, c: &Config) -> Box<dyn Target> {
        let tf32 = c.trainer.tf32;
        // Multiprocessors, and the most shared memory of a block by the CUDA C++ Programming Guide.
        let (processors, shared, wgmma) = match self {
            Self::This => return Box::new(CpuTarget),
            Self::A100 => (108, 163 * 1024, false),
            Self::H100 | Self::H200 => (132, 227 * 1024, true),
        };
        Box::new(CudaTarget::new(Machine { processors, shared, tf32, wgmma }))
    }
}

/// The most that a device computes and moves.
#[derive(Clone, Debug)]
pub struct Peaks {
    /// Name, and where the numbers are from.
    pub name: String,
    /// Operations a second of products in 32 bits.
    pub products: f64,
    /// Operations a second of products in 16 bits.
    pub half_products: f64,
    /// Operations a second of all else.
    pub others: f64,
    /// Bytes a second to and from memory.
    pub bytes: f64,
}

impl Peaks {
    /// The numbers of a device under a configuration: measured here, or dense ones of its data sheet.
    ///
    /// # Errors
    /// If this machine cannot be measured.
    pub fn of(device: Device, c: &Config) -> anyhow::Result<Self> {
        let (narrow, on) = match c.trainer.tf32 {
            true => (true, "TF32 and 16-bit products"),
            false => (false, "16-bit products"),
        };
        let sheet = |name: &str, tf32: f64, half: f64, f32: f64, bytes: f64| Self {
            name: format!("{name}, by its data sheet ({on} on tensor cores)"),
            products: if narrow { tf32 } else { f32 } * 1e12,
            half_products: half * 1e12,
            others: f32 * 1e12,
            bytes: bytes * 1e12,
        };
        Ok(match device {
            Device::A100 => sheet("NVIDIA A100", 156.0, 312.0, 19.5, 2.039),
            Device::H100 => sheet("NVIDIA H100", 494.7, 989.4, 66.9, 3.35),
            Device::H200 => sheet("NVIDIA H200", 494.7, 989.4, 66.9, 4.8),
            Device::This => Self::measured(c.trainer.threads)?,
        })
    }

    fn measured(threads: Option<usize>) -> anyhow::Result<Self> {
        Self::on(&CpuExecutor::new(threads).context("the CPU executor cannot start")?)
    }

    /// What an executor does, measured.
    ///
    /// # Errors
    /// If it fails.
    pub fn on(executor: &dyn Executor) -> anyhow::Result<Self> {
        // The clock's share of a launch: what one takes that has next to nothing to do.
        let empty = longest(executor, [1, 64], |g, x| g.gelu(x))?;
        // Far beyond any cache; what is read once and what is written.
        let moved = longest(executor, [8, 4 << 20], |g, x| g.gelu(x))? - empty;
        let products = products(executor, empty, |g, x| g.matmul(x, x))?;
        let half: MakeOp = |g, x| {
            let (x, shape) = (g.cast(x, DType::Bf16)?, g.ty(x).shape.clone());
            let op = MatMul { ta: false, tb: false, bias: false };
            Ok(g.typed(op.into(), &[x, x], vec![TensorType::new(DType::Bf16, shape)])?[0])
        };
        let half_products = self::products(executor, empty, half)?.max(products);
        let bytes = 2.0 * 4.0 * (8 << 22) as f64 / moved;
        // What is not a product waits for memory.
        let name = "this machine, measured just now".into();
        Ok(Self { name, products, half_products, others: products, bytes })
    }

    /// As JSON.
    pub fn object(&self) -> serde_json::Value {
        serde_json::json!({
            "device": self.name, "flops_32": self.products, "flops_16": self.half_products,
            "flops_other": self.others, "bytes": self.bytes,
        })
    }

    /// The most that products and memory do, in words.
    pub fn rates(&self) -> String {
        format!(
            "products {:.2} TFLOP/s in 32 bits, {:.2} in 16, memory {:.0} GB/s",
            self.products / 1e12,
            self.half_products / 1e12,
            self.bytes / 1e9
        )
    }

    /// The least time that a launch can take, in seconds.
    pub fn seconds(&self, launch: &Launch) -> f64 {
        let [ins, outs] =
            [&launch.inputs, &launch.outputs].map(|os| os.iter().map(Operand::ty).collect::<Vec<_>>());
        let computing =
            self.computing(&launch.op, &ins.iter().collect::<Vec<_>>(), &outs.iter().collect::<Vec<_>>());
        computing.max(launch.cost().1 as f64 / self.bytes)
    }

    /// The least time that an op computes; of a fused one, what is in it, one after the other.
    fn computing(&self, op: &Op, ins: &[&TensorType], outs: &[&TensorType]) -> f64 {
        if let Op::Fused(op) = op {
            let types = |values: &[Value]| values.iter().map(|&v| op.body.ty(v)).collect::<Vec<_>>();
            let nodes = op.body.nodes().iter();
            return nodes.map(|n| self.computing(&n.op, &types(&n.inputs), &types(&n.outputs))).sum();
        }
        let operands = op.operands();
        let half = operands.iter().any(|&i| ins[i].dtype != DType::F32);
        let peak = match operands {
            [] => self.others,
            _ if half => self.half_products,
            _ => self.products,
        };
        op.flops(ins, outs) as f64 / peak
    }
}

/// Operations a second of a square product, as large as takes a millisecond, or the largest.
fn products(executor: &dyn Executor, empty: f64, op: MakeOp) -> anyhow::Result<f64> {
    let mut n = 1024;
    loop {
        let seconds = longest(executor, [n, n], op)? - empty;
        if seconds > 1e-3 || n == 4096 {
            return Ok(2.0 * (n as f64).powi(3) / seconds);
        }
        n *= 2;
    }
}

/// Adds an op on a value to a graph.
type MakeOp = fn(&mut Graph, Value) -> Result<Value, GraphError>;

/// Seconds of the longest launch of a program of one op on a matrix of this shape, the best of some runs.
fn longest(executor: &dyn Executor, shape: [usize; 2], op: MakeOp) -> anyhow::Result<f64> {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32(shape));
    let y = op(&mut g, x)?;
    g.output("y", y);
    let state = Arc::new(StateSpec::default());
    let plan = compile("peak", g, &state, executor.target())?;
    let (mut program, mut memory) = (executor.load(plan)?, executor.new_state(&state, 0)?);
    // Between -1 and 1, and no two alike: a device that multiplies zeros is faster than it is.
    let value = |i: usize| (i as u32).wrapping_mul(2_654_435_761) as i32 as f32 / 2_147_483_648.0;
    let x: Vec<u8> = (0..shape[0] * shape[1]).flat_map(|i| value(i).to_le_bytes()).collect();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let times = program.run_timed(&mut *memory, &[(&x).into()])?;
        best = best.min(times.iter().map(|t| t.seconds).fold(0.0, f64::max));
    }
    Ok(best)
}
