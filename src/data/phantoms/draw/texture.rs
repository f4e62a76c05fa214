//! Fast reproducible noise for pixels: white noise and smooth texture.

use super::canvas::N;
/// A small fast generator (splitmix64); its quality suffices for film grain.
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `[-width, width)`.
    pub(super) fn spread(&mut self, width: f32) -> f32 {
        let unit = (self.next() >> 40) as f32 / 16_777_216.0;
        (2.0 * unit - 1.0) * width
    }

    /// Returns a number in `[low, high)`.
    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        (low + high) * 0.5 + self.spread((high - low) * 0.5)
    }
}

/// Smooth noise in about [-1, 1]: random values on a lattice with smooth interpolation.
pub(super) struct Texture {
    knots: Vec<f32>,
    row: usize,
    scale: f32,
}

impl Texture {
    /// Creates a texture for the whole image with blobs about `step` pixels wide.
    pub(super) fn new(noise: &mut Noise, step: usize) -> Self {
        let row = N / step.max(1) + 3;
        let knots = (0..row * row).map(|_| noise.spread(1.0)).collect();
        Self {
            knots,
            row,
            scale: 1.0 / step.max(1) as f32,
        }
    }

    /// Returns the values at all pixels of the image, row by row.
    pub(super) fn field(&self) -> Vec<f32> {
        let columns: Vec<(usize, f32)> = (0..N).map(|x| self.split(x)).collect();
        let mut field = Vec::with_capacity(N * N);
        let mut line = vec![0.0; self.row];
        for y in 0..N {
            let (j, fy) = self.split(y);
            let top = self.knots.iter().skip(j * self.row);
            let bottom = self.knots.iter().skip((j + 1) * self.row);
            for (value, (top, bottom)) in line.iter_mut().zip(top.zip(bottom)) {
                *value = top * (1.0 - fy) + bottom * fy;
            }
            field.extend(columns.iter().map(|&(i, fx)| match line.get(i..i + 2) {
                Some([left, right]) => left * (1.0 - fx) + right * fx,
                _ => 0.0,
            }));
        }
        field
    }

    /// Returns the lattice cell of a pixel coordinate, and the smoothed position in the cell.
    fn split(&self, pixel: usize) -> (usize, f32) {
        let place = pixel as f32 * self.scale;
        let cell = place as usize;
        (cell, ease(place - cell as f32))
    }

    /// Returns the value at a point; outside the image, the value at the nearest edge.
    pub(super) fn at(&self, x: f32, y: f32) -> f32 {
        let last = (self.row - 2) as f32;
        let (x, y) = (
            (x * self.scale).clamp(0.0, last),
            (y * self.scale).clamp(0.0, last),
        );
        let (i, j) = (x as usize, y as usize);
        let (fx, fy) = (ease(x - i as f32), ease(y - j as f32));
        let knot = |i: usize, j: usize| self.knots.get(j * self.row + i).copied().unwrap_or(0.0);
        let top = knot(i, j) * (1.0 - fx) + knot(i + 1, j) * fx;
        let bottom = knot(i, j + 1) * (1.0 - fx) + knot(i + 1, j + 1) * fx;
        top * (1.0 - fy) + bottom * fy
    }
}

fn ease(t: f32) -> f32 {
    t * t * (3.0 - 2.0 * t)
}
