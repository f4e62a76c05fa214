//! Adapters of matrices outside of the decoder layers, merged when they are loaded: the vision tower, the
//! projector and the output layer.

use std::sync::Arc;

use anyhow::Result;
use candle::DType;

use crate::checkpoints::store::encoding::TensorEncoding;
use crate::checkpoints::store::tensor_store::{StoredTensor, TensorIdentity};
use crate::support::digest::Digest;

/// Adapter of a matrix.
pub(super) struct MergedAdapter<'a> {
    /// `A`, `(rank, c_in)`.
    pub(super) a: &'a StoredTensor,
    /// `B`, `(c_out, rank)`.
    pub(super) b: &'a StoredTensor,
    /// Factor of `B · A`.
    pub(super) scale: f64,
}

impl MergedAdapter<'_> {
    /// Adds the adapter to the matrix. The result has the element type of the matrix, or f32 if the matrix is
    /// quantised.
    pub(super) fn merge(&self, matrix: &StoredTensor) -> Result<StoredTensor> {
        let [a, b] = [self.a, self.b].map(|stored| stored.values.to_dtype(DType::F32));
        let change = (b?.matmul(&a?)? * self.scale)?;
        let values = (matrix.to_f32()? + change)?;
        let dtype = if matrix.blocks.is_some() { DType::F32 } else { matrix.values.dtype() };
        let parts = [&matrix.identity, &self.a.identity, &self.b.identity];
        let mut bytes: Vec<u8> =
            parts.iter().flat_map(|identity| *identity.digest.as_bytes()).collect();
        bytes.extend(self.scale.to_le_bytes());
        let identity = TensorIdentity {
            digest: Digest::sha256(&bytes),
            encoding: TensorEncoding::Plain(DType::F32),
            shape: matrix.identity.shape.clone(),
        };
        Ok(StoredTensor {
            identity: Arc::new(identity),
            values: values.to_dtype(dtype)?,
            blocks: None,
            file: self.a.file.clone(),
        })
    }
}
