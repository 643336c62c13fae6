//! `patchify`: a copy with the axes cut and turned.

use super::Kernel;
use super::copy::copy_as;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::View;
use ocelli_ir::ops::Patchify;

/// The order of the axes of a picture `[B, H/p, p, W/p, p, C]` in its patches `[B, H/p, W/p, C, p, p]`.
pub const PATCH_ORDER: [usize; 6] = [0, 1, 3, 5, 2, 4];

impl Kernel for Patchify {
    fn reads(&self, _: usize, _: &View) -> bool {
        true
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let patches = |picture: crate::layout::Layout| {
            picture.split_axis(2, self.patch).split_axis(1, self.patch).permute(&PATCH_ORDER)
        };
        copy_as::<f32>(cx, ins, outs, patches, |y, shape| y.reshape(shape));
    }
}
