//! Image resizing with the results of Pillow.
//!
//! Published encoders were trained on images that Pillow had resized (`src/libImaging/Resample.c`).
//! Its filter widens in proportion to the reduction, which avoids aliasing. Its weights are
//! fixed-point numbers with 22 fractional bits. It runs a horizontal and then a vertical pass, and
//! rounds to bytes between them. Results of other libraries differ by several grey levels.
//!
//! Pillow 13 runs the vertical pass first if the height shrinks so much that this is faster. This
//! module keeps the order of earlier versions, which the encoders were trained with and which torch
//! has too. If values are clipped between the passes, the two orders differ: by two levels in
//! smooth images, by a few levels at single pixels of textured images, and by twenty levels in
//! noise.
//! Torch's coarser weights differ from both by two levels.

use std::ops::Range;

use rayon::prelude::*;

use crate::image::DecodedImage;
use crate::resample::Resample;

/// An image on a larger background of one colour. The background is not stored. Lengths in pixels.
#[derive(Clone, Copy)]
pub(crate) struct PaddedImage<'a> {
    pub(crate) image: &'a DecodedImage,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Offset of the image from the left and top edges.
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) background: [u8; 3],
}

/// Size after resizing, and the region of it to compute. Lengths in pixels.
#[derive(Clone)]
pub(crate) struct OutputRegion {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) columns: Range<usize>,
    pub(crate) rows: Range<usize>,
}

/// Fractional bits of a weight.
const PRECISION: u32 = 22;
/// Bits of the lower part of a weight.
const LOWER_BITS: u32 = 12;
/// One half in fixed point, added before the fractional bits are removed.
const ROUNDING: i32 = 1 << (PRECISION - 1);
/// Rows in one block of parallel work.
const BLOCK_ROWS: usize = 16;

/// Filter weights of the output positions along one axis.
struct FilterWeights {
    taps: Vec<Taps>,
    /// Input positions that the outputs need.
    input_range: Range<usize>,
}

/// Weights of one output position, in fixed point. A weight is `upper · 2¹² + lower`, because
/// processors multiply and add pairs of 16-bit numbers fastest.
struct Taps {
    start: usize,
    upper: Vec<i16>,
    lower: Vec<i16>,
}

impl FilterWeights {
    fn new(filter: Resample, input: usize, output: usize, positions: Range<usize>) -> Self {
        let scale = input as f64 / output as f64;
        let filter_scale = scale.max(1.);
        let support = filter.support() * filter_scale;
        let taps: Vec<Taps> = positions
            .map(|position| {
                let center = (position as f64 + 0.5) * scale;
                let start = (center - support + 0.5).max(0.) as usize;
                let end = ((center + support + 0.5) as usize).min(input);
                let weights: Vec<f64> = (start..end)
                    .map(|i| filter.weight((i as f64 - center + 0.5) * filter_scale.recip()))
                    .collect();
                let sum: f64 = weights.iter().sum();
                let fixed_point = weights.iter().map(|weight| {
                    let weight = if sum == 0. { *weight } else { weight / sum };
                    // Halves are rounded away from zero, as in Pillow.
                    (weight * f64::from(1 << PRECISION)).round() as i32
                });
                let (upper, lower) = fixed_point
                    .map(|weight| {
                        ((weight >> LOWER_BITS) as i16, (weight & ((1 << LOWER_BITS) - 1)) as i16)
                    })
                    .unzip();
                Taps { start, upper, lower }
            })
            .collect();
        let start = taps.iter().map(|taps| taps.start).min().unwrap_or(0);
        let end = taps.iter().map(|taps| taps.start + taps.upper.len()).max().unwrap_or(0);
        Self { taps, input_range: start..end }
    }
}

impl Taps {
    /// Computes the weighted sum of the samples under the filter. Partial sums may wrap, because
    /// only the total has to fit.
    fn apply(&self, samples: &[i16]) -> u8 {
        let samples = samples.get(self.start..).unwrap_or_default();
        let dot = |weights: &[i16]| {
            samples.iter().zip(weights).fold(0i32, |sum, (sample, weight)| {
                sum.wrapping_add(i32::from(*sample) * i32::from(*weight))
            })
        };
        round_to_byte((dot(&self.upper) << LOWER_BITS).wrapping_add(dot(&self.lower)))
    }
}

/// Rounds a fixed-point sum to a byte.
fn round_to_byte(sum: i32) -> u8 {
    (sum.wrapping_add(ROUNDING) >> PRECISION).clamp(0, 255) as u8
}

/// Returns the size of the buffer between the two passes in bytes, or `None` if it overflows.
pub(crate) fn buffer_size(padded: &PaddedImage<'_>, region: &OutputRegion) -> Option<usize> {
    padded.height.checked_mul(region.columns.len())?.checked_mul(3)
}

/// Resizes a padded image and returns the region, three bytes per pixel.
pub(crate) fn resize(padded: &PaddedImage<'_>, region: &OutputRegion, filter: Resample) -> Vec<u8> {
    let column_weights =
        FilterWeights::new(filter, padded.width, region.width, region.columns.clone());
    let row_weights = FilterWeights::new(filter, padded.height, region.height, region.rows.clone());
    let stride = 3 * region.columns.len();
    if stride == 0 {
        return Vec::new();
    }
    let first_row = row_weights.input_range.start;
    let mut buffer = vec![0u8; row_weights.input_range.len() * stride];
    buffer.par_chunks_mut(BLOCK_ROWS * stride).enumerate().for_each(|(block, rows)| {
        let mut channels = ChannelRows::new(padded);
        for (i, row) in rows.chunks_exact_mut(stride).enumerate() {
            horizontal_pass(
                padded,
                first_row + block * BLOCK_ROWS + i,
                &column_weights,
                &mut channels,
                row,
            );
        }
    });
    let mut out = vec![0u8; region.rows.len() * stride];
    out.par_chunks_mut(stride).zip(&row_weights.taps).for_each_init(
        || vec![0i32; stride],
        |sums, (row, taps)| {
            let rows = buffer.chunks_exact(stride).skip(taps.start - first_row);
            vertical_pass(rows, taps, sums, row);
        },
    );
    out
}

/// A row of the padded image, one vector of samples per channel.
struct ChannelRows([Vec<i16>; 3]);

impl ChannelRows {
    /// Creates a row of background.
    fn new(padded: &PaddedImage<'_>) -> Self {
        Self(padded.background.map(|value| vec![i16::from(value); padded.width]))
    }

    /// Writes a row of the image at offset `left`. The background next to it does not change.
    fn write_row(&mut self, left: usize, row: &[u8]) {
        let [red, green, blue] = &mut self.0;
        let samples = red.iter_mut().zip(green).zip(blue).skip(left);
        for (((red, green), blue), pixel) in samples.zip(row.as_chunks::<3>().0) {
            *red = i16::from(pixel[0]);
            *green = i16::from(pixel[1]);
            *blue = i16::from(pixel[2]);
        }
    }
}

/// Resizes row `y` of the padded image to the output width.
fn horizontal_pass(
    padded: &PaddedImage<'_>,
    y: usize,
    weights: &FilterWeights,
    channels: &mut ChannelRows,
    out: &mut [u8],
) {
    let image_y = y.checked_sub(padded.top).filter(|y| *y < padded.image.height());
    let Some(y) = image_y else {
        // The weights sum to one, so a row of one colour keeps its colour.
        out.as_chunks_mut::<3>().0.fill(padded.background);
        return;
    };
    channels.write_row(padded.left, padded.image.row(y));
    for (pixel, taps) in out.as_chunks_mut::<3>().0.iter_mut().zip(&weights.taps) {
        *pixel = channels.0.each_ref().map(|channel| taps.apply(channel));
    }
}

/// Computes one output row from the rows under the filter. `sums` is a buffer of the length of
/// `out`.
fn vertical_pass<'a>(
    rows: impl Iterator<Item = &'a [u8]>,
    taps: &Taps,
    sums: &mut [i32],
    out: &mut [u8],
) {
    sums.fill(0);
    for ((row, upper), lower) in rows.zip(&taps.upper).zip(&taps.lower) {
        let weight = (i32::from(*upper) << LOWER_BITS) + i32::from(*lower);
        for (sum, sample) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_add(i32::from(*sample).wrapping_mul(weight));
        }
    }
    for (out, sum) in out.iter_mut().zip(sums.iter()) {
        *out = round_to_byte(*sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise_image(width: usize, height: usize) -> DecodedImage {
        let mut state = 3u64;
        let data = (0..3 * width * height)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        DecodedImage::from_rgb(width, height, data).unwrap()
    }

    fn unpadded(image: &DecodedImage) -> PaddedImage<'_> {
        let (width, height) = (image.width(), image.height());
        PaddedImage { image, width, height, left: 0, top: 0, background: [0; 3] }
    }

    fn full_output(width: usize, height: usize) -> OutputRegion {
        OutputRegion { width, height, columns: 0..width, rows: 0..height }
    }

    #[test]
    fn equal_size_returns_the_same_image() {
        let image = noise_image(9, 7);
        for filter in [Resample::Bicubic, Resample::Bilinear] {
            assert_eq!(resize(&unpadded(&image), &full_output(9, 7), filter), image.data());
        }
    }

    #[test]
    fn uniform_colour_is_preserved() {
        let image = DecodedImage::from_rgb(37, 5, [200, 3, 255].repeat(37 * 5)).unwrap();
        for (width, height) in [(1, 1), (4, 9), (100, 50)] {
            let out = resize(&unpadded(&image), &full_output(width, height), Resample::Bicubic);
            assert_eq!(out, [200, 3, 255].repeat(width * height));
        }
    }

    #[test]
    fn region_equals_crop_of_full_output() {
        let image = noise_image(40, 23);
        let full = resize(&unpadded(&image), &full_output(17, 31), Resample::Bicubic);
        let region = OutputRegion { columns: 3..9, rows: 11..30, ..full_output(17, 31) };
        let part = resize(&unpadded(&image), &region, Resample::Bicubic);
        let cropped: Vec<u8> =
            (11..30).flat_map(|y| &full[3 * (17 * y + 3)..3 * (17 * y + 9)]).copied().collect();
        assert_eq!(part, cropped);
    }

    #[test]
    fn padded_image_equals_stored_background() {
        let image = noise_image(12, 5);
        let background = [10, 20, 30];
        let mut stored = background.repeat(12 * 12);
        stored[3 * 12 * 3..][..3 * 12 * 5].copy_from_slice(image.data());
        let stored = DecodedImage::from_rgb(12, 12, stored).unwrap();
        let padded =
            PaddedImage { image: &image, width: 12, height: 12, left: 0, top: 3, background };
        for side in [4, 12, 29] {
            let resized = resize(&padded, &full_output(side, side), Resample::Bicubic);
            assert_eq!(
                resized,
                resize(&unpadded(&stored), &full_output(side, side), Resample::Bicubic)
            );
        }
    }
}
