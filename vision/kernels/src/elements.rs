//! Access to the elements of f32 tensors, and the sizes of blocks of parallel work.

use candle::backend::BackendStorage as _;
use candle::{CpuStorage, DType, Layout, Result, Storage, Tensor, bail};

/// Rows in one block of work.
pub(crate) const ROW_BLOCK: usize = 32;

/// Elements in one block of work of an elementwise operation.
pub(crate) const FLAT_BLOCK: usize = 1 << 14;

/// Longest inner dimension that the general matrix kernel (`gemm`) never splits. Products split
/// longer ones into blocks of this length, and add the blocks in order.
pub(crate) const MAX_UNSPLIT_LENGTH: usize = 512;

/// Returns true if the one-pass CPU kernels support this tensor.
pub(crate) fn is_cpu_f32(x: &Tensor) -> bool {
    x.device().is_cpu() && x.dtype() == DType::F32
}

/// Borrows the elements of a contiguous f32 tensor inside the custom operation `op`.
pub fn as_f32_slice<'a>(storage: &'a CpuStorage, layout: &Layout, op: &str) -> Result<&'a [f32]> {
    let CpuStorage::F32(values) = storage else {
        bail!("{op}: expected f32, found {:?}", storage.dtype());
    };
    let range = layout.contiguous_offsets();
    match range.and_then(|(start, end)| values.get(start..end)) {
        Some(values) => Ok(values),
        None => bail!("{op}: expected a contiguous tensor, found strides {:?}", layout.stride()),
    }
}

/// Calls a function with the elements of an f32 tensor on the CPU, in row-major order.
pub(crate) fn with_f32_slice<T>(tensor: &Tensor, call: impl FnOnce(&[f32]) -> T) -> Result<T> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        bail!("expected a tensor on the CPU, found one on {:?}", tensor.device().location());
    };
    Ok(call(as_f32_slice(storage, layout, "read")?))
}

/// Copies the elements of an f32 tensor on the CPU, in row-major order.
pub fn to_f32_vec(tensor: &Tensor) -> Result<Vec<f32>> {
    tensor.flatten_all()?.to_vec1::<f32>()
}
