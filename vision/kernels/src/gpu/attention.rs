//! Launches of the kernels of attention.
//!
//! The pass checks shapes and types and keeps the blocks alive. Its records point to tokens in these
//! blocks.

use candle::{DType, Result, Shape, Tensor, bail};

use super::launch::{
    KernelModule, Launch, Parameter, address, kernel_module, type_name, uninitialized,
};
use super::pass::{AttentionPass, NewHeads, TaskRecords};
use super::tasks::ROWS;
use crate::attention::AttentionSettings;

const STORE: KernelModule = kernel_module!("store");
const FEW_ROWS: KernelModule = kernel_module!("rows");
const TILES: KernelModule = kernel_module!("tiles");
/// Threads per block of `attend_rows`.
const ROW_THREADS: u32 = 256;
/// Threads per block of `attend_tiles`.
const TILE_THREADS: u32 = 128;
/// Threads per block of `combine`.
const COMBINE_THREADS: u32 = 128;
/// Threads per block of `store`.
const STORE_THREADS: u32 = 64;

impl AttentionPass {
    /// Rotates keys by the positions of their tokens and stores keys and values of a layer.
    ///
    /// # Errors
    /// The tensors do not fit the pass, or a position exceeds the tables.
    pub fn fill(&self, layer: usize, heads: &NewHeads) -> Result<()> {
        self.store_heads(layer, None, heads)
    }

    /// Stores keys and values like [`Self::fill`], and returns the rotated queries.
    ///
    /// # Shapes
    /// `q` and the result: (n, h, d).
    ///
    /// # Errors
    /// As [`Self::fill`].
    pub fn store(&self, layer: usize, q: &Tensor, heads: &NewHeads) -> Result<Tensor> {
        self.check_queries(layer, q)?;
        let q = q.contiguous()?;
        let rotated = uninitialized(q.shape(), q.dtype(), q.device())?;
        self.store_heads(layer, Some([&q, &rotated]), heads)?;
        Ok(rotated)
    }

    /// Stores keys and values. `queries`: the queries and the tensor for the rotated ones.
    fn store_heads(
        &self,
        layer: usize,
        queries: Option<[&Tensor; 2]>,
        heads: &NewHeads,
    ) -> Result<()> {
        self.check_new_heads(layer, heads)?;
        let (k, v) = (heads.k.contiguous()?, heads.v.contiguous()?);
        let (query_heads, [q, rotated]) = match queries {
            Some([q, rotated]) => (q.dim(1)?, [address(q)?, address(rotated)?]),
            None => (0, [0; 2]),
        };
        let parameters = [
            Parameter::Address(q),
            Parameter::Address(address(&k)?),
            Parameter::Address(address(&v)?),
            Parameter::Address(address(&heads.tables[0])?),
            Parameter::Address(address(&heads.tables[1])?),
            Parameter::Address(self.record_address(self.layout.rows)?),
            Parameter::Address(rotated),
            Parameter::Int(layer as i32),
            Parameter::Int(query_heads as i32),
            Parameter::Int(self.shape.kv_heads as i32),
            Parameter::Int(self.shape.head_size as i32),
        ];
        let launch = Launch {
            module: STORE,
            kernel: &format!("store_{}", type_name(self.shape.dtype)?),
            grid: (self.tokens, query_heads + self.shape.kv_heads),
            threads: STORE_THREADS,
            parameters: &parameters,
        };
        launch.start(k.device().as_cuda_device()?)
    }

    /// Computes the attention of rotated queries over the stored keys and values of a layer.
    ///
    /// # Shapes
    /// `q`: (n, h, d), the result: (n, h·d).
    ///
    /// # Errors
    /// The queries do not fit the pass, or there is no kernel for the head size.
    pub fn attend(&self, layer: usize, q: &Tensor, settings: AttentionSettings) -> Result<Tensor> {
        self.check_queries(layer, q)?;
        let (n, heads, d) = q.dims3()?;
        let q = q.contiguous()?;
        let out = uninitialized(q.shape(), q.dtype(), q.device())?;
        // For each head of each partial result: the largest score, the sum of the weights, the values.
        let partial = Shape::from((self.layout.partial_rows.max(1), heads, d + 2));
        let partial = uninitialized(&partial, DType::F32, q.device())?;
        let task =
            AttentionTask { pass: self, layer, q: &q, out: &out, partial: &partial, settings };
        let dtype = type_name(self.shape.dtype)?;
        for (tasks, rows) in [(self.layout.single_rows, 1), (self.layout.few_rows, ROWS)] {
            if tasks.count > 0 {
                let kernel = format!("attend_rows_{dtype}_d{}_r{rows}", padded_head_size(d)?);
                let blocks = self.shape.kv_heads * self.group.div_ceil(rows);
                task.start(FEW_ROWS, &kernel, (tasks, blocks), ROW_THREADS)?;
            }
        }
        let tiles = self.layout.tiles;
        task.start(TILES, &format!("attend_tiles_{dtype}_d{d}"), (tiles, heads), TILE_THREADS)?;
        let parameters = [
            Parameter::Address(address(&partial)?),
            Parameter::Address(self.record_address(self.layout.combinations.start)?),
            Parameter::Address(address(&out)?),
            Parameter::Int(d as i32),
        ];
        let launch = Launch {
            module: FEW_ROWS,
            kernel: &format!("combine_{dtype}"),
            grid: (self.layout.combinations.count, heads),
            threads: COMBINE_THREADS,
            parameters: &parameters,
        };
        launch.start(q.device().as_cuda_device()?)?;
        out.reshape((n, heads * d))
    }

    /// Returns the address of a number of the records.
    fn record_address(&self, index: usize) -> Result<i64> {
        Ok(address(&self.records)? + (index * size_of::<i64>()) as i64)
    }
}

/// Tensors and settings that all kernels of an attention take.
struct AttentionTask<'a> {
    pass: &'a AttentionPass,
    layer: usize,
    q: &'a Tensor,
    out: &'a Tensor,
    partial: &'a Tensor,
    settings: AttentionSettings,
}

impl AttentionTask<'_> {
    /// Starts a kernel on tasks, with a number of blocks for each.
    fn start(
        &self,
        module: KernelModule,
        kernel: &str,
        (tasks, blocks): (TaskRecords, usize),
        threads: u32,
    ) -> Result<()> {
        let Self { pass, q, settings, .. } = self;
        let (_, heads, d) = q.dims3()?;
        let window = settings.window.unwrap_or(0).min(i32::MAX as usize);
        let parameters = [
            Parameter::Address(address(q)?),
            Parameter::Address(pass.record_address(0)?),
            Parameter::Address(pass.record_address(pass.layout.sequences)?),
            Parameter::Address(pass.record_address(pass.layout.rows)?),
            Parameter::Address(pass.record_address(tasks.start)?),
            Parameter::Address(address(self.out)?),
            Parameter::Address(address(self.partial)?),
            Parameter::Int(self.layer as i32),
            Parameter::Int(heads as i32),
            Parameter::Int(pass.shape.kv_heads as i32),
            Parameter::Int(d as i32),
            Parameter::Float(settings.scale * std::f32::consts::LOG2_E),
            Parameter::Int(window as i32),
        ];
        let (grid, parameters) = ((tasks.count, blocks), &parameters);
        Launch { module, kernel, grid, threads, parameters }.start(q.device().as_cuda_device()?)
    }
}

/// Returns the head size of the kernel for few rows that processes heads of `d` values: a lane loads
/// a 32nd of it at once.
fn padded_head_size(d: usize) -> Result<usize> {
    let fits = |size: &usize| d <= *size && d % (size / 32) == 0;
    match [32, 64, 128, 256].into_iter().find(fits) {
        Some(size) => Ok(size),
        None => bail!("attention: no kernel for heads of {d} values\nhint: use --device cpu"),
    }
}
