//! Between the reference's tensors and the bytes that executors take and give: f32 and u32 little-endian, u8 as it is.

use ocelli_ir::tensor::{Data, Tensor};

/// A tensor as an executor takes it; floats are rounded to f32.
pub fn bytes(t: &Tensor<f64>) -> Vec<u8> {
    match &t.data {
        Data::Real(v) => v.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
        Data::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U8(v) => v.clone(),
    }
}

/// The f32 numbers that an executor gives.
pub fn floats(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]]))).collect()
}
