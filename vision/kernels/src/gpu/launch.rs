//! Launches of kernels.

use candle::backend::BackendStorage as _;
use candle::cuda_backend::cudarc::driver::{DevicePtr as _, LaunchConfig, PushKernelArg as _};
use candle::cuda_backend::{CudaDevice, CudaStorageSlice};
use candle::{DType, Device, Result, Shape, Storage, Tensor, bail};

/// The kernels of a file.
#[derive(Clone, Copy)]
pub(super) struct KernelModule {
    pub(super) name: &'static str,
    /// The code for the GPU of the build.
    pub(super) ptx: &'static str,
}

/// Returns the kernels of a file, by its name without the extension.
macro_rules! kernel_module {
    ($name:literal) => {
        KernelModule {
            name: concat!("acem3-", $name),
            ptx: include_str!(concat!(env!("OUT_DIR"), "/", $name, ".ptx")),
        }
    };
}
pub(super) use kernel_module;

/// Returns the address of a contiguous tensor on a GPU.
pub(super) fn address(tensor: &Tensor) -> Result<i64> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else {
        bail!("expected a tensor on a GPU, found one on {:?}", tensor.device());
    };
    let Some((start, _)) = layout.contiguous_offsets() else {
        bail!("expected a contiguous tensor, found strides {:?}", layout.stride());
    };
    let stream = storage.device.cuda_stream();
    let address = match &storage.slice {
        CudaStorageSlice::I64(slice) => slice.device_ptr(&stream).0,
        CudaStorageSlice::F32(slice) => slice.device_ptr(&stream).0,
        CudaStorageSlice::F16(slice) => slice.device_ptr(&stream).0,
        CudaStorageSlice::BF16(slice) => slice.device_ptr(&stream).0,
        _ => bail!("no kernel for {:?}", storage.dtype()),
    };
    Ok(address as i64 + (start * tensor.dtype().size_in_bytes()) as i64)
}

/// A parameter of a kernel.
#[derive(Clone, Copy)]
pub(super) enum Parameter {
    Address(i64),
    Int(i32),
    Long(i64),
    Float(f32),
}

/// A kernel, its grid and its parameters.
pub(super) struct Launch<'a> {
    pub(super) module: KernelModule,
    pub(super) kernel: &'a str,
    pub(super) grid: (usize, usize),
    pub(super) threads: u32,
    pub(super) parameters: &'a [Parameter],
}

impl Launch<'_> {
    /// Starts the kernel on the stream of the device, after all earlier work. Does nothing if the grid is
    /// empty.
    #[expect(unsafe_code, reason = "composed operations take several times as long")]
    pub(super) fn start(&self, device: &CudaDevice) -> Result<()> {
        let (Ok(width), Ok(height)) = (u32::try_from(self.grid.0), u16::try_from(self.grid.1))
        else {
            bail!("{}: a grid of {:?} blocks is too large", self.kernel, self.grid);
        };
        if width == 0 || height == 0 {
            return Ok(());
        }
        let function =
            device.get_or_load_custom_func(self.kernel, self.module.name, self.module.ptx)?;
        let mut builder = function.builder();
        for parameter in self.parameters {
            match parameter {
                Parameter::Address(number) | Parameter::Long(number) => builder.arg(number),
                Parameter::Int(number) => builder.arg(number),
                Parameter::Float(number) => builder.arg(number),
            };
        }
        let config = LaunchConfig {
            grid_dim: (width, u32::from(height), 1),
            block_dim: (self.threads, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the callers pass the parameters of the kernel in its order, and have checked the
        // shapes and types of the tensors. All threads use the one stream of the device (see
        // `new_cuda_with_stream` in candle), which frees the memory of a tensor after the kernels that
        // were started before.
        unsafe { builder.launch(config) }.map_err(candle::Error::wrap)?;
        Ok(())
    }
}

/// Creates a tensor that a kernel fills.
#[expect(unsafe_code, reason = "clearing the memory takes as long as a small kernel")]
pub(super) fn uninitialized(shape: &Shape, dtype: DType, device: &Device) -> Result<Tensor> {
    // SAFETY: the kernels write each value of their output, and nothing reads it before.
    unsafe { Tensor::empty(shape, dtype, device) }
}

/// Returns the name of a type in the names of kernels.
pub(super) fn type_name(dtype: DType) -> Result<&'static str> {
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 => Ok(dtype.as_str()),
        _ => bail!("no kernel for {dtype:?}"),
    }
}
