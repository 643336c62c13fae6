//! The language of Ocelli: a training step is a *program*, and this crate says what a program is.
//!
//! A model is plain Rust that adds nodes to a [`Graph`]; passes turn graphs into graphs and at last into a
//! [`Plan`](plan::Plan); an [`Executor`](executor::Executor) runs plans. Nothing here names a device or a model.
//!
//! # Rules that would cost a rewrite if left out
//!
//! | rule | where it is kept |
//! |---|---|
//! | 1. **State.** Parameters, moments, counters, settings, caches and the metrics ring live in one state at fixed addresses outside every plan; all programs share it, and one scratch arena. | [`StateSpec`], [`ops::StateRead`], [`ops::StateWrite`], [`executor::State`] |
//! | 2. **Run-time scalars.** What changes between runs is a tensor input or state, never a constant, never a shape. | [`ops::Input`], [`SlotKind::Setting`], [`SlotKind::Counter`] |
//! | 3. **Partial batch.** A batch is padded to the program's size with rows of weight 0; no program exists for a remainder. | the `weights` of [`ops::CrossEntropy`] |
//! | 4. **Loss** yields sum and weight; the division by the global weight happens at apply. | [`ops::CrossEntropy`], `scale` of [`ops::Adam`] |
//! | 5. **Overflow.** A skipped step leaves parameters, moments, Adam's step and the schedule untouched; the data position advances. | [`ops::StepGate`], `apply` of [`ops::Adam`]; two counters, optimiser steps and batches consumed |
//! | 6. **Dropout key** = (seed, step, module path, sample, logical coordinates), never batch, padding, rank or fusion. | [`dropout::Dropout`], the one definition |
//! | 7. **Ranks and bad samples.** All ranks run the same program; a bad sample is a row of weight 0; order never depends on decoding. | rule 3, and the sampler in `data` |
//! | 8. **Sharding.** A parameter's use is a node, which a pass can replace by a gather with a lifetime of its own. | [`ops::StateRead`] |
//! | 9. **Libraries and capture.** Everything is chosen and loaded before the first run: [`executor::Executor::load`] may allocate, [`executor::Program::run`] may not. | [`executor`] |
//! | 10. **Branches.** Each launch has a branch and the launches it waits for; buffers share memory only by happens-before. | [`plan::Launch`], verified in `passes` |
//! | 11. **Decode.** Prefill and decode are programs over the same state; attention takes a tensor of valid lengths. | [`ops::UpdateSlice`], `kv_len` of [`ops::Attention`], [`SlotKind::Cache`] |
//! | 12. **Residual stream.** Its dtype is a policy of a pass: ops take any float dtype, models ask for none. | [`DType`], [`op::Storage`] |
//! | 13. **Threads.** No reduction's order depends on the number of threads. | every executor; tested by equal bits |
//! | 14. **Times** come from the device, printed late; a loss that is no number stops a run within one report and the steps under way. | [`SlotKind::Ring`], [`executor::State::begin_read`] |
//! | 15. Low-precision kernels are judged against f64 on the rounded inputs. | [`mod@reference`], generic over f32 and f64 |
//! | 16. No kernel, pass or op knows a model or a size. | this crate has no constant of a model |
mod cut;
pub mod dropout;
mod dtype;
pub mod executor;
mod graph;
mod input;
pub mod memory;
pub mod op;
pub mod ops;
mod parts;
pub mod plan;
mod reading;
pub mod reference;
pub mod rng;
mod shape;
pub mod state;
pub mod tensor;

pub use cut::Cut;
pub use dtype::DType;
pub use graph::{Graph, GraphError, Node, Phase, Value, ValueInfo};
pub use ops::Op;
pub use shape::{Shape, TensorType, View};
pub use state::{Init, Slot, SlotId, SlotKind, StateSpec};
