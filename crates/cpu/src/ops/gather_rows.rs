//! `gather_rows`: copies of rows; zeros for an index outside the table.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use ocelli_ir::ops::GatherRows;
use ocelli_ir::{DType, TensorType};

/// Elements that one task copies.
const CHUNK: usize = 16 * 1024;

impl Kernel for GatherRows {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let (table, ids) = (ins.get::<f32>(0), ins.dense::<u32>(1));
        let cols = table.layout.shape()[1];
        let table = table.dense();
        let [out] = outs.take::<f32, 1>();
        if cols == 0 {
            return;
        }
        let chunk = (CHUNK / cols).max(1);
        let out = out.reshape(&[ids.len(), cols]);
        par_tiles(cx, ids.len() * cols, [(out, [Cut::new(0, chunk)])], |[i], [out]| {
            for (out, &id) in out.dense().chunks_exact_mut(cols).zip(&ids[i * chunk..]) {
                match table.chunks_exact(cols).nth(id as usize) {
                    Some(row) => out.copy_from_slice(row),
                    None => out.fill(0.0),
                }
            }
        });
    }
}
