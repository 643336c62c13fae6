//! Hidden layers: a product whose left operand is made on the way from other products, and the gradients of the weights at
//! both ends. What lies between is in registers and shared memory only. For GPUs with `wgmma`, and narrow models: a block has all
//! columns of its rows.

mod text;

use super::block::Block;
use super::{Wgmma, lies};
use crate::elements::Loop;
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Machine, Matrix, c_type};
use crate::ops::column_sum::Sums;
use ocelli_ir::DType;

/// Columns of the layer that are made at once.
const SLICE: usize = 64;
/// Columns of a slice that a warpgroup makes.
const HALF: usize = SLICE / 2;
/// Slices of weights under way.
const STAGES: usize = 4;
/// Fewest tiles of 64 rows for each part of the rows, when they are shared out.
const FEWEST_TILES: usize = 6;

/// A product whose result, element by element changed, is an operand of others.
#[derive(Clone, Debug)]
pub struct First {
    /// Rows `[m, k]`.
    pub a: Matrix,
    /// Weights `[k, h]`.
    pub b: Matrix,
    /// Contraction.
    pub k: usize,
    /// A bias `[h]`, at a multiple of 16 bytes.
    pub bias: Option<(Arg, DType)>,
}

/// The gradient of weights: the product of a made value, turned, and the rows of a first product.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Number of the made value.
    pub made: usize,
    /// The rows.
    pub rows: Matrix,
    /// `[k, h]` is wanted, not `[h, k]`.
    pub turned: bool,
    /// Where it goes, in f32.
    pub to: Arg,
}

/// The product of what is made with weights.
#[derive(Clone, Debug)]
pub struct Last {
    /// Number of the made value.
    pub made: usize,
    /// Weights `[h, n]`.
    pub b: Matrix,
    /// Columns.
    pub n: usize,
}

/// A hidden layer.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Rows.
    pub m: usize,
    /// Width of the layer.
    pub h: usize,
    /// One or two.
    pub firsts: Vec<First>,
    /// Statements that declare what is made, `float u[..]`, from first products `t[..]`.
    pub statements: String,
    /// How many values are made.
    pub made: usize,
    /// Its product, if it has one: then it has no gradients.
    pub last: Option<Last>,
    /// None, or those of both ends.
    pub weights: Vec<Weight>,
    /// The sum of the columns of a made value, in f32.
    pub sum: Option<(usize, Arg)>,
}

/// A slice of a weight in memory.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    /// All of the weight, as it lies.
    matrix: Matrix,
    /// The layer's columns are rows in memory.
    rows: bool,
    /// Extent of its other side.
    other: usize,
}

impl Slice {
    /// Of weights `[other, h]`, or turned `[h, other]`.
    fn new(matrix: &Matrix, other: usize, turned: bool) -> Self {
        let rows = (matrix.col == 1) == turned;
        let matrix = Matrix { row: matrix.row.max(matrix.col), col: 1, batch: 0, ..*matrix };
        Self { matrix, rows, other }
    }
}

/// What is loaded: operands' rows, and slices of weights, each once.
struct Loads {
    rows: Vec<(Matrix, usize)>,
    slices: Vec<Slice>,
}

/// The number of an element in a list, which has it then.
fn place<E: PartialEq>(list: &mut Vec<E>, e: E) -> usize {
    list.iter().position(|x| *x == e).unwrap_or_else(|| {
        list.push(e);
        list.len() - 1
    })
}

impl Layer {
    fn loads(&self) -> Loads {
        let mut loads = Loads { rows: Vec::new(), slices: Vec::new() };
        for first in &self.firsts {
            place(&mut loads.rows, (first.a, first.k));
            place(&mut loads.slices, Slice::new(&first.b, first.k, false));
        }
        if let Some(last) = &self.last {
            place(&mut loads.slices, Slice::new(&last.b, last.n, true));
        }
        loads
    }

    /// Whether the kernels below take it.
    fn fits(&self, machine: Machine, loads: &Loads) -> bool {
        let side = |n: usize| n == 64 || n == 128;
        let rows = loads.rows.iter().all(|(a, k)| side(*k) && a.col == 1 && lies(a));
        let slices = loads.slices.iter().all(|s| lies(&s.matrix));
        let dtype = self.firsts[0].a.dtype;
        let one_type = loads.rows.iter().all(|(a, _)| a.dtype == dtype)
            && loads.slices.iter().all(|s| s.matrix.dtype == dtype);
        let wide = loads.rows.iter().all(|(_, k)| *k == loads.rows[0].1);
        let ends = match (&self.last, &self.weights[..]) {
            (Some(last), []) => self.sum.is_none() && side(last.n),
            (None, [a, b]) => wide && [a, b].iter().all(|w| loads.rows.iter().any(|(m, _)| *m == w.rows)),
            _ => false,
        };
        // Few rows leave most of the device idle: products side by side are better.
        let busy = self.m.div_ceil(64) >= machine.processors / 4;
        machine.wgmma && rows && slices && one_type && ends && busy && self.h.is_multiple_of(SLICE)
    }

    /// The kernel of the last product, with an epilogue over its results, and where the sums of columns go that the epilogue
    /// adds to; none if others do better.
    pub fn rows(&self, epilogue: Loop, columns: &[Arg], machine: Machine) -> Option<Lowered> {
        let loads = self.loads();
        let last = self.last.as_ref().filter(|_| self.fits(machine, &loads))?;
        // All of the device in one go, or a tile twice as high that reads weights half as often.
        let bm = if self.m.div_ceil(128) * 4 >= machine.processors * 3 { 128 } else { 64 };
        let dtype = self.firsts[0].a.dtype;
        let defines = Defines::new().with("H", self.h).with("LAST_MADE", last.made);
        let text = [
            &self.text(&loads, bm),
            include_str!("hidden.cuh"),
            &last.text(&loads, dtype),
            include_str!("hidden_rows.cuh"),
        ];
        let [rows, weights] = sizes(&loads, bm);
        let block = Block {
            dtype,
            results: [self.m, last.n],
            tile: [bm, last.n],
            warps: (bm / 16, 1),
            parts: 2,
            at_once: 1,
            read_ahead: false,
            shared: (rows + STAGES * weights) * 2 + self.firsts.len() * self.h * size_of::<f32>(),
            multiply: defines.source(&text.concat()),
            operands: self.operands(&loads),
        };
        block.with_epilogue(epilogue, columns).filter(|done| has_room(done, machine))
    }

    /// The gradients of weights and bias; none if others do better.
    pub fn weights(&self, machine: Machine) -> Option<Lowered> {
        let loads = &self.loads();
        (self.last.is_none() && self.fits(machine, loads)).then_some(())?;
        let mut done = Lowered::default();
        let tiles = self.m.div_ceil(64);
        let slices = self.h / SLICE;
        let parts = (machine.processors / slices).min(tiles / FEWEST_TILES).max(1);
        let wide = loads.rows[0].1;
        let mut sums: Vec<Sums> =
            self.weights.iter().map(|w| Sums::now(&mut done, parts, self.h * wide, &[w.to])).collect();
        sums.extend(self.sum.map(|(_, to)| Sums::new(&mut done, parts, self.h, &[to])));
        let to: Vec<Arg> = sums.iter().map(|s| s.parts).collect();
        let dtype = self.firsts[0].a.dtype;
        let [rows, weights] = sizes(loads, 64);
        let list = |f: &dyn Fn(&Weight) -> String| self.weights.iter().map(f).collect::<Vec<_>>().join(", ");
        let at = |w: &Weight| loads.rows.iter().position(|(m, _)| *m == w.rows).unwrap_or(0) * wide * 64;
        let own = format!(
            "constexpr int WEIGHT_MADE[] = {{{}}}, WEIGHT_ROWS[] = {{{}}}, SUM_MADE = {};\nconstexpr bool WEIGHT_TURNED[] = {{{}}};\n",
            list(&|w| w.made.to_string()),
            list(&|w| at(w).to_string()),
            self.sum.map_or("-1".into(), |s| s.0.to_string()),
            list(&|w| w.turned.to_string()),
        );
        let product = Wgmma { n: wide, a_turned: true, b_turned: true, ..Wgmma::new(dtype) };
        let text = [
            include_str!("block.cuh"),
            &self.text(loads, 64),
            include_str!("hidden.cuh"),
            &product.function("wgmma_weights"),
            &own,
            include_str!("hidden_weights.cu"),
        ];
        let defines = Defines::new()
            .with("T", c_type(dtype))
            .with("M", self.m)
            .with("H", self.h)
            .with("WIDE", wide)
            .with("BM", 64)
            .with("BN", wide)
            .with("WARPS_M", 4)
            .with("WARPS_N", 1)
            .with("WARPS_K", 4);
        let bytes = (weights + 2 * (2 * rows + self.made * SLICE * 64)) * 2
            + self.firsts.len() * SLICE * size_of::<f32>();
        let shared = bytes.max((wide / 2 * 256 + 16 * 32) * size_of::<f32>());
        done.calls.push(Call::Kernel(KernelCall {
            entry: "hidden_weights",
            source: defines.source(&text.concat()),
            grid: [slices as u32, parts as u32, 1],
            block: 512,
            shared: shared as u32,
            // Without a bias nothing is stored to the last.
            args: self
                .operands(loads)
                .into_iter()
                .chain([to[0], to[1], *to.get(2).unwrap_or(&to[0])])
                .collect(),
        }));
        Sums::make(sums, &mut done);
        has_room(&done, machine).then_some(done)
    }

    fn operands(&self, loads: &Loads) -> Vec<Arg> {
        let rows = loads.rows.iter().map(|(m, _)| m.arg);
        let biases = self.firsts.iter().filter_map(|f| f.bias.map(|b| b.0));
        rows.chain(loads.slices.iter().map(|s| s.matrix.arg)).chain(biases).collect()
    }
}

/// Elements of all operands' tiles of `high` rows, and of all slices.
fn sizes(loads: &Loads, high: usize) -> [usize; 2] {
    [loads.rows.iter().map(|(_, k)| high * k).sum(), loads.slices.iter().map(|s| SLICE * s.other).sum()]
}

/// True if the device has the shared memory that the kernels need.
fn has_room(done: &Lowered, machine: Machine) -> bool {
    done.calls.iter().all(|call| match call {
        Call::Kernel(k) => k.shared as usize <= machine.shared,
        _ => true,
    })
}
