//! `unpatchify`: a copy with the axes cut and turned.

use super::Kernel;
use super::copy::par_copy;
use super::patchify::PATCH_ORDER;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::ops::Unpatchify;

impl Kernel for Unpatchify {
    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [picture] = outs.take::<f32, 1>();
        let patches = picture.split_axis(2, self.patch).split_axis(1, self.patch).permute(&PATCH_ORDER);
        let shape = *patches.layout();
        par_copy(cx, patches, &ins.get::<f32>(0).reshape(shape.shape()));
    }
}
