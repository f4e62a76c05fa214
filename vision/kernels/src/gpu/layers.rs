//! Launches of the kernels of `layers.cu`.
//!
//! Each function returns `None` if its kernel does not support the tensors: if they are not on one GPU,
//! need a gradient, or have other types or shapes. The caller then uses candle's operations.

use candle::{DType, Result, Tensor};

use super::launch::{
    KernelModule, Launch, Parameter, address, kernel_module, type_name, uninitialized,
};

const MODULE: KernelModule = kernel_module!("layers");
/// Elements that a thread processes.
const ELEMENTS: usize = 4;
/// Threads of a block of an elementwise kernel.
const THREADS: usize = 256;
/// Threads of the block of a row.
const ROW_THREADS: u32 = 512;

/// Computes the RMS norm of the rows of `x` in f32. The result has the type `dtype`.
pub(crate) fn rms_norm(
    x: &Tensor,
    weight: &Tensor,
    eps: f64,
    dtype: DType,
) -> Result<Option<Tensor>> {
    if !are_supported_rows(x, &[weight]) {
        return Ok(None);
    }
    let size = weight.dims1()?;
    let (x, weight) = (x.contiguous()?, weight.contiguous()?);
    let out = uninitialized(x.shape(), dtype, x.device())?;
    let parameters = [
        Parameter::Address(address(&x)?),
        Parameter::Address(address(&weight)?),
        Parameter::Address(address(&out)?),
        Parameter::Int(size as i32),
        Parameter::Float(eps as f32),
    ];
    let kernel = format!("rms_norm_{}", type_name(dtype)?);
    let grid = (x.elem_count() / size, 1);
    let (kernel, parameters) = (kernel.as_str(), &parameters);
    Launch { module: MODULE, kernel, grid, threads: ROW_THREADS, parameters }
        .start(x.device().as_cuda_device()?)?;
    Ok(Some(out))
}

/// Computes the layer norm of the rows of `x` in f32.
pub(crate) fn layer_norm(
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    eps: f64,
) -> Result<Option<Tensor>> {
    if !are_supported_rows(x, &[weight, bias]) {
        return Ok(None);
    }
    let size = weight.dims1()?;
    let (x, weight, bias) = (x.contiguous()?, weight.contiguous()?, bias.contiguous()?);
    let out = uninitialized(x.shape(), DType::F32, x.device())?;
    let parameters = [
        Parameter::Address(address(&x)?),
        Parameter::Address(address(&weight)?),
        Parameter::Address(address(&bias)?),
        Parameter::Address(address(&out)?),
        Parameter::Int(size as i32),
        Parameter::Float(eps as f32),
    ];
    let (kernel, grid, parameters) = ("layer_norm_f32", (x.elem_count() / size, 1), &parameters);
    Launch { module: MODULE, kernel, grid, threads: ROW_THREADS, parameters }
        .start(x.device().as_cuda_device()?)?;
    Ok(Some(out))
}

/// Computes `gate · σ(gate) · up`.
pub(crate) fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Option<Tensor>> {
    let are_alike = gate.dims() == up.dims() && gate.dtype() == up.dtype();
    if !are_alike || !are_supported(&[gate, up]) {
        return Ok(None);
    }
    let (gate, up) = (gate.contiguous()?, up.contiguous()?);
    let out = uninitialized(gate.shape(), gate.dtype(), gate.device())?;
    let kernel = format!("swiglu_{}", type_name(gate.dtype())?);
    start_elementwise(&kernel, [&gate, &up, &out], None)?;
    Ok(Some(out))
}

/// Computes `x + y` for `x` in f32. The result is in f32.
pub(crate) fn add(x: &Tensor, y: &Tensor) -> Result<Option<Tensor>> {
    if x.dims() != y.dims() || x.dtype() != DType::F32 || !are_supported(&[x, y]) {
        return Ok(None);
    }
    let (x, y) = (x.contiguous()?, y.contiguous()?);
    let out = uninitialized(x.shape(), DType::F32, x.device())?;
    start_elementwise(&format!("add_{}", type_name(y.dtype())?), [&x, &y, &out], None)?;
    Ok(Some(out))
}

/// Adds a bias to each row of `x`, in f32.
pub(crate) fn add_bias(x: &Tensor, bias: &Tensor) -> Result<Option<Tensor>> {
    if !are_supported_rows(x, &[bias]) {
        return Ok(None);
    }
    let size = bias.dims1()?;
    let (x, bias) = (x.contiguous()?, bias.contiguous()?);
    let out = uninitialized(x.shape(), DType::F32, x.device())?;
    start_elementwise("add_bias_f32", [&x, &bias, &out], Some(size))?;
    Ok(Some(out))
}

/// Starts a kernel over the elements of its output, which is the last tensor. `row`: the number of
/// values of a row, for kernels that take it.
fn start_elementwise(kernel: &str, tensors: [&Tensor; 3], row: Option<usize>) -> Result<()> {
    let out = tensors[2];
    let count = out.elem_count();
    let mut parameters = tensors
        .into_iter()
        .map(|tensor| address(tensor).map(Parameter::Address))
        .collect::<Result<Vec<_>>>()?;
    parameters.push(Parameter::Long(count as i64));
    parameters.extend(row.map(|row| Parameter::Int(row as i32)));
    let grid = (count.div_ceil(ELEMENTS * THREADS), 1);
    let (threads, parameters) = (THREADS as u32, parameters.as_slice());
    Launch { module: MODULE, kernel, grid, threads, parameters }
        .start(out.device().as_cuda_device()?)
}

/// Returns true for tensors on the same GPU that need no gradient and have a multiple of 4 values in a
/// row and before the first one.
fn are_supported(tensors: &[&Tensor]) -> bool {
    tensors.iter().all(|x| {
        let row = x.dims().last().copied().unwrap_or(0);
        x.device().is_cuda()
            && tensors.iter().all(|other| other.device().same_device(x.device()))
            && !x.track_op()
            && x.layout().start_offset() % ELEMENTS == 0
            && row > 0
            && row % ELEMENTS == 0
            && matches!(x.dtype(), DType::F32 | DType::F16 | DType::BF16)
    })
}

/// Returns true for supported tensors in f32: rows, and weights or biases with a value for each column.
fn are_supported_rows(x: &Tensor, weights: &[&Tensor]) -> bool {
    let is_row = |w: &&Tensor| {
        w.dtype() == DType::F32 && w.rank() == 1 && w.dims().last() == x.dims().last()
    };
    x.dtype() == DType::F32
        && weights.iter().all(is_row)
        && are_supported(&[&[x], weights].concat())
}
