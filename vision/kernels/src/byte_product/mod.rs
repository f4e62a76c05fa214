//! Products with weights in `Q8_0` and `Q4K` blocks, computed with 8-bit integers.
//!
//! Each block of 32 values of the input gets a scale and is rounded to 8 bits, as in llama.cpp. The
//! dot product of an input block and a weight block is exact, in 32-bit integers. It is converted to
//! f32, multiplied by the scale of the input and added with the scale of the weight, block by block.
//! The order of these operations is fixed, so all processors, batch sizes and numbers of threads
//! give equal results.

mod arrangement;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod byte_panels;
mod byte_rows;
mod kernel;
mod nibble_panels;
mod panel_rows;
mod portable;
mod product;
#[cfg(target_arch = "x86_64")]
mod rounding_avx2;
mod row_rounding;
mod tier;

pub use self::arrangement::{arrange_blocks, has_byte_products};
pub(crate) use self::arrangement::{arranged_shape, select_panel_rows};
pub(crate) use self::panel_rows::PANEL_ROWS;
pub(crate) use self::product::multiply_by_panels;
pub use self::tier::instruction_set;
