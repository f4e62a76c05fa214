//! Launches of the kernels of `layers.cu`.

use candle::{DType, Result, Tensor, bail};

use super::launch::{KernelModule, Launch, Parameter, address, type_name, uninitialized};

const MODULE: KernelModule = KernelModule {
    name: "acem3-layers",
    ptx: include_str!(concat!(env!("OUT_DIR"), "/layers.ptx")),
};
/// Elements that a thread processes.
const ELEMENTS: usize = 4;
/// Threads of a block of an elementwise kernel.
const THREADS: usize = 256;
/// Threads of the block of a row.
const ROW_THREADS: u32 = 512;

/// Returns true if the kernels take these tensors: all on the same GPU, none with a gradient, and a
/// multiple of 4 values before them and in a row.
pub(crate) fn has_kernels(tensors: &[&Tensor]) -> bool {
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

/// Computes the RMS norm of the rows of `x` in f32. The result has the type `dtype`.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64, dtype: DType) -> Result<Tensor> {
    let size = weight.dims1()?;
    check(x.dtype() == DType::F32 && weight.dtype() == DType::F32, &[x, weight])?;
    check(x.dims().last() == Some(&size), &[x, weight])?;
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
    Ok(out)
}

/// Computes the layer norm of the rows of `x` in f32.
pub(crate) fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<Tensor> {
    let size = weight.dims1()?;
    let dtypes = [x.dtype(), weight.dtype(), bias.dtype()];
    check(dtypes == [DType::F32; 3] && bias.dims() == [size], &[x, weight, bias])?;
    check(x.dims().last() == Some(&size), &[x, weight])?;
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
    Ok(out)
}

/// Computes `gate · σ(gate) · up`.
pub(crate) fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    check(gate.dims() == up.dims() && gate.dtype() == up.dtype(), &[gate, up])?;
    let (gate, up) = (gate.contiguous()?, up.contiguous()?);
    let out = uninitialized(gate.shape(), gate.dtype(), gate.device())?;
    let kernel = format!("swiglu_{}", type_name(gate.dtype())?);
    start_elementwise(&kernel, [&gate, &up, &out], None)?;
    Ok(out)
}

/// Computes `x + y` for `x` in f32. The result is in f32.
pub(crate) fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    check(x.dims() == y.dims() && x.dtype() == DType::F32, &[x, y])?;
    let (x, y) = (x.contiguous()?, y.contiguous()?);
    let out = uninitialized(x.shape(), DType::F32, x.device())?;
    start_elementwise(&format!("add_{}", type_name(y.dtype())?), [&x, &y, &out], None)?;
    Ok(out)
}

/// Adds a bias to each row of `x`, in f32.
pub(crate) fn add_bias(x: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let size = bias.dims1()?;
    check(x.dtype() == DType::F32 && bias.dtype() == DType::F32, &[x, bias])?;
    check(x.dims().last() == Some(&size), &[x, bias])?;
    let (x, bias) = (x.contiguous()?, bias.contiguous()?);
    let out = uninitialized(x.shape(), DType::F32, x.device())?;
    start_elementwise("add_bias_f32", [&x, &bias, &out], Some(size))?;
    Ok(out)
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

fn check(is_valid: bool, tensors: &[&Tensor]) -> Result<()> {
    if !is_valid || !has_kernels(tensors) {
        bail!("tensors {tensors:?} do not fit the kernel");
    }
    Ok(())
}
