//! Many casts in one launch: the weights of a step in mixed precision.

use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, c_type};
use ocelli_ir::DType;

/// Elements that a block takes.
const CHUNK: usize = 4096;

/// Input number i, of `sizes[i]` elements, to output number i. `aligned`: all of them start at multiples of 16 bytes.
pub fn many([from, to]: [DType; 2], sizes: &[usize], aligned: bool) -> Lowered {
    let mut done = Lowered::default();
    for (i, &n) in sizes.iter().enumerate() {
        for start in (0..n).step_by(CHUNK) {
            let count = (n - start).min(CHUNK) as u64;
            done.table.push((Arg::In(i, start * from.size()), count));
            done.table.push((Arg::Out(i, start * to.size()), count));
        }
    }
    if done.table.is_empty() {
        return done;
    }
    let defines =
        Defines::new().with("FROM", c_type(from)).with("TO", c_type(to)).with("ALIGNED", u8::from(aligned));
    done.calls.push(Call::Kernel(KernelCall {
        entry: "casts",
        source: defines.source(include_str!("casts.cu")),
        grid: [(done.table.len() / 2) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: vec![Arg::Table],
    }));
    done
}
