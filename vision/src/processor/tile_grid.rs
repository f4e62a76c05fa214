//! Arrangement of the encoder inputs of one image.

use std::ops::Range;

use super::any_res_max::RegionRounding;

/// Number of encoder inputs of an image, and the grid of its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileGrid {
    /// Number of encoder inputs: tiles, and the whole image if it is an input.
    pub inputs: usize,
    /// Rows of tiles; 0 without tiles.
    pub rows: usize,
    /// Columns of tiles; 0 without tiles.
    pub columns: usize,
    /// Height and width of the image in pixels.
    pub image_size: (usize, usize),
}

impl TileGrid {
    /// Returns the arrangement of an image that is one encoder input.
    pub fn whole(image_size: (usize, usize)) -> Self {
        Self { inputs: 1, rows: 0, columns: 0, image_size }
    }

    /// Returns the rows and columns of features that show the image and not its padding
    /// (`unpad_image` in transformers' `modeling_llava_next.py`). Each tile has `side` × `side`
    /// features.
    pub fn content_region(
        &self,
        side: usize,
        rounding: RegionRounding,
    ) -> (Range<usize>, Range<usize>) {
        let (rows, columns) = (self.rows * side, self.columns * side);
        let (height, width) = (self.image_size.0 as f64, self.image_size.1 as f64);
        if width / height > columns as f64 / rows as f64 {
            let content = rounding.round(height * (columns as f64 / width));
            let margin = rows.saturating_sub(content) / 2;
            (margin..rows - margin, 0..columns)
        } else {
            let content = rounding.round(width * (rows as f64 / height));
            let margin = columns.saturating_sub(content) / 2;
            (0..rows, margin..columns - margin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_of_narrow_images_is_no_content() {
        let narrow = TileGrid { inputs: 5, rows: 2, columns: 2, image_size: (100, 20) };
        assert_eq!(narrow.content_region(10, RegionRounding::Decimals), (0..20, 8..12));
        let wide = TileGrid { image_size: (20, 100), ..narrow };
        assert_eq!(wide.content_region(10, RegionRounding::Decimals), (8..12, 0..20));
    }
}
