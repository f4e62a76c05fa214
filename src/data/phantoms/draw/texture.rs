//! Fast reproducible noise for pixels: white noise and smooth texture.

use super::canvas::WIDTH;

/// A small, fast generator (splitmix64). Its quality suffices for image noise.
pub(super) struct Noise(u64);

impl Noise {
    /// Creates the generator of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `[-width, width)`.
    pub(super) fn symmetric(&mut self, width: f32) -> f32 {
        let unit = (self.next_u64() >> 40) as f32 / 16_777_216.0;
        (2.0 * unit - 1.0) * width
    }

    /// Returns a number in `[low, high)`.
    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        (low + high) * 0.5 + self.symmetric((high - low) * 0.5)
    }
}

/// Smooth noise in about [-1, 1]: random values on a lattice with smooth interpolation.
pub(super) struct Texture {
    /// Lattice values, row by row.
    knots: Vec<f32>,
    /// Number of lattice values per row.
    row_length: usize,
    /// Lattice cells per pixel.
    scale: f32,
}

impl Texture {
    /// Creates a texture for the whole image with blobs about `step` pixels wide.
    pub(super) fn new(noise: &mut Noise, step: usize) -> Self {
        let row = WIDTH / step.max(1) + 3;
        let knots = (0..row * row).map(|_| noise.symmetric(1.0)).collect();
        Self { knots, row_length: row, scale: 1.0 / step.max(1) as f32 }
    }

    /// Returns the values at all pixels of the image, row by row.
    pub(super) fn values(&self) -> Vec<f32> {
        let columns: Vec<(usize, f32)> = (0..WIDTH).map(|x| self.lattice_position(x)).collect();
        let mut field = Vec::with_capacity(WIDTH * WIDTH);
        let mut line = vec![0.0; self.row_length];
        for y in 0..WIDTH {
            let (j, fy) = self.lattice_position(y);
            let top = self.knots.iter().skip(j * self.row_length);
            let bottom = self.knots.iter().skip((j + 1) * self.row_length);
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
    fn lattice_position(&self, pixel: usize) -> (usize, f32) {
        let position = pixel as f32 * self.scale;
        let cell = position as usize;
        (cell, smoothstep(position - cell as f32))
    }

    /// Returns the value at a point; outside the image, the value at the nearest edge.
    pub(super) fn value_at(&self, x: f32, y: f32) -> f32 {
        let last = (self.row_length - 2) as f32;
        let (x, y) = ((x * self.scale).clamp(0.0, last), (y * self.scale).clamp(0.0, last));
        let (i, j) = (x as usize, y as usize);
        let (fx, fy) = (smoothstep(x - i as f32), smoothstep(y - j as f32));
        let knot =
            |i: usize, j: usize| self.knots.get(j * self.row_length + i).copied().unwrap_or(0.0);
        let top = knot(i, j) * (1.0 - fx) + knot(i + 1, j) * fx;
        let bottom = knot(i, j + 1) * (1.0 - fx) + knot(i + 1, j + 1) * fx;
        top * (1.0 - fy) + bottom * fy
    }
}

/// Returns the smoothstep polynomial 3t² − 2t³.
fn smoothstep(t: f32) -> f32 {
    t * t * (3.0 - 2.0 * t)
}
