//! Between the reference's tensors and the bytes that executors take and give, little-endian.

use half::{bf16, f16};
use ocelli_ir::DType;
use ocelli_ir::tensor::{Data, Tensor};

/// A tensor as an executor takes it; floats are rounded to f32.
pub fn bytes(t: &Tensor<f64>) -> Vec<u8> {
    stored(t, DType::F32)
}

/// A tensor as an executor takes it; floats are rounded to `dtype`.
pub fn stored(t: &Tensor<f64>, dtype: DType) -> Vec<u8> {
    match &t.data {
        Data::Real(v) => match dtype {
            DType::Bf16 => v.iter().flat_map(|&x| bf16::from_f64(x).to_le_bytes()).collect(),
            DType::F16 => v.iter().flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
            _ => v.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
        },
        Data::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U8(v) => v.clone(),
    }
}

/// The f32 numbers that an executor gives.
pub fn floats(bytes: &[u8]) -> Vec<f64> {
    loaded(bytes, DType::F32)
}

/// The numbers, stored as `dtype`, that an executor gives.
pub fn loaded(bytes: &[u8], dtype: DType) -> Vec<f64> {
    match dtype {
        DType::Bf16 => bytes.chunks_exact(2).map(|c| bf16::from_le_bytes([c[0], c[1]]).to_f64()).collect(),
        DType::F16 => bytes.chunks_exact(2).map(|c| f16::from_le_bytes([c[0], c[1]]).to_f64()).collect(),
        _ => bytes.chunks_exact(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]]))).collect(),
    }
}
