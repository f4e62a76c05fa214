//! Image preprocessing: from decoded images to pixel values.

mod any_res;
mod any_res_max;
mod checks;
mod dynamic_tiles;
mod error;
mod geometry;
mod image_processor;
mod input_processor;
mod size;
mod square_tiles;
mod tile_grid;
mod tiling;

pub use any_res::{AnyRes, Tiles};
pub use any_res_max::{AnyResMax, RegionRounding, Resolutions};
pub use dynamic_tiles::DynamicTiles;
pub use error::ProcessError;
pub use image_processor::ImageProcessor;
pub use input_processor::InputProcessor;
pub use size::{CropRounding, CropSize, Pad, ResizeSize};
pub use tile_grid::TileGrid;
pub use tiling::Tiling;
