//! Arrangement of quantised weights in panels.

use candle::quantized::GgmlDType;
use candle::{CpuStorage, DType, Device, Layout, Result, Storage, Tensor, bail};

use super::byte_panels::BytePanel;
use super::nibble_panels::NibblePanel;
use super::panel_rows::{PANEL_ROWS, PanelRows, QUAD_BYTES};

/// Returns true if products with this type of blocks are computed with 8-bit integers.
pub fn has_byte_products(block_type: GgmlDType) -> bool {
    matches!(block_type, GgmlDType::Q8_0 | GgmlDType::Q4K)
}

/// Arranges packed rows in the order in which products read them: `Q8_0` and `Q4K` in panels, where
/// rows of zeros fill the last panel. Other types stay as they are.
///
/// # Shapes
/// (rows, bytes per row) → [`arranged_shape`].
///
/// # Errors
///
/// The rows are not whole blocks of bytes on the CPU.
pub fn arrange_blocks(rows: &Tensor, block_type: GgmlDType) -> Result<Tensor> {
    match block_type {
        GgmlDType::Q8_0 => arrange::<BytePanel>(rows),
        GgmlDType::Q4K => arrange::<NibblePanel>(rows),
        _ => Ok(rows.clone()),
    }
}

fn arrange<'a, W: PanelRows<'a>>(rows: &Tensor) -> Result<Tensor> {
    let (n, row_bytes) = rows.dims2()?;
    if rows.dtype() != DType::U8 || row_bytes == 0 || !row_bytes.is_multiple_of(W::STORED_BYTES) {
        bail!("rows of {row_bytes} bytes are not whole blocks of {}", W::STORED_BYTES);
    }
    let bytes = rows.flatten_all()?.to_vec1::<u8>()?;
    let arranged_bytes = W::arranged_bytes(row_bytes / W::STORED_BYTES);
    let padded = n.next_multiple_of(PANEL_ROWS);
    let len = padded * arranged_bytes;
    // Panels start at a cache line, so that no load crosses two.
    let mut memory = vec![0u8; len + QUAD_BYTES - 1];
    let start = memory.as_ptr().align_offset(QUAD_BYTES).min(QUAD_BYTES - 1);
    let arranged = &mut memory[start..start + len];
    let panels = arranged.chunks_exact_mut(PANEL_ROWS * arranged_bytes);
    for (panel, rows) in panels.zip(bytes.chunks(PANEL_ROWS * row_bytes)) {
        for (row, blocks) in rows.chunks_exact(row_bytes).enumerate() {
            W::write_row(panel, row, blocks);
        }
    }
    let size = memory.len();
    let memory = Tensor::from_vec(memory, size, &Device::Cpu)?;
    memory.narrow(0, start, len)?.reshape((padded, arranged_bytes))
}

/// Returns the shape of a matrix in the order of [`arrange_blocks`]: rows, and bytes per row.
pub(crate) fn arranged_shape(
    (rows, columns): (usize, usize),
    block_type: GgmlDType,
) -> (usize, usize) {
    let blocks = columns / block_type.block_size();
    let row_bytes = match block_type {
        GgmlDType::Q8_0 => BytePanel::arranged_bytes(blocks),
        GgmlDType::Q4K => NibblePanel::arranged_bytes(blocks),
        _ => blocks * block_type.type_size(),
    };
    let rows = if has_byte_products(block_type) { rows.next_multiple_of(PANEL_ROWS) } else { rows };
    (rows, row_bytes)
}

/// Converts rows of a matrix in panels to f32.
///
/// # Shapes
/// `panels` (padded rows, bytes per row), n indices → (n, `c_in`).
///
/// # Errors
///
/// An index is not below the number of rows.
pub(crate) fn select_panel_rows(
    panels: &Tensor,
    block_type: GgmlDType,
    shape: (usize, usize),
    indices: &[u32],
) -> Result<Tensor> {
    let (storage, layout) = panels.storage_and_layout();
    let bytes = as_bytes(&storage, layout)?;
    match block_type {
        GgmlDType::Q4K => select::<NibblePanel>(bytes, shape, indices),
        _ => select::<BytePanel>(bytes, shape, indices),
    }
}

fn select<'a, W: PanelRows<'a>>(
    bytes: &'a [u8],
    (rows, columns): (usize, usize),
    indices: &[u32],
) -> Result<Tensor> {
    let panel_bytes = bytes.len() / rows.div_ceil(PANEL_ROWS).max(1);
    let mut values = Vec::with_capacity(indices.len() * columns);
    for index in indices {
        let row = *index as usize;
        if row >= rows {
            bail!("row {row} of a matrix with {rows} rows");
        }
        let panel = W::borrow(&bytes[row / PANEL_ROWS * panel_bytes..][..panel_bytes]);
        let end = values.len() + columns;
        panel.read_row(row % PANEL_ROWS, &mut values);
        values.truncate(end);
    }
    Tensor::from_vec(values, (indices.len(), columns), &Device::Cpu)
}

/// Borrows the bytes of a tensor on the CPU.
pub(super) fn as_bytes<'a>(storage: &'a Storage, layout: &Layout) -> Result<&'a [u8]> {
    match (storage, layout.contiguous_offsets()) {
        (Storage::Cpu(CpuStorage::U8(bytes)), Some((start, end))) => Ok(&bytes[start..end]),
        _ => bail!("blocks are not contiguous bytes on the CPU"),
    }
}
