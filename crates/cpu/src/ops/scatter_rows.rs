//! `scatter_rows`: each task owns some rows of the output and adds to them in the order of the ids.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use ocelli_ir::ops::ScatterRows;
use ocelli_ir::{DType, TensorType};

/// Tasks; each reads all ids.
const TASKS: usize = 16;

impl Kernel for ScatterRows {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[1].dtype == DType::F32
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let (ids, rows) = (ins.dense::<u32>(0), ins.dense::<f32>(1));
        let [out] = outs.take::<f32, 1>();
        let cols = out.layout().shape()[1];
        if cols == 0 || self.rows == 0 {
            return;
        }
        let chunk = self.rows.div_ceil(TASKS);
        let work = rows.len() + self.rows * cols;
        par_tiles(cx, work, [(out, [Cut::new(0, chunk)])], |[i], [out]| {
            let out = out.dense();
            out.fill(0.0);
            for (&id, row) in ids.iter().zip(rows.chunks_exact(cols)) {
                let mine =
                    (id as usize).checked_sub(i * chunk).and_then(|r| out.chunks_exact_mut(cols).nth(r));
                if let Some(out) = mine {
                    out.iter_mut().zip(row).for_each(|(o, &x)| *o += x);
                }
            }
        });
    }
}
