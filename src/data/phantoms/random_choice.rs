//! Random choices that are equal on every platform and for every version of the `rand` crates. They
//! use only the bit stream of `ChaCha` and no distribution of `rand`.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Creates the generator for one purpose (`tag`) of one phantom. Different tags have different
/// streams.
pub(crate) fn stream_rng(seed: u64, index: u64, tag: u64) -> ChaCha8Rng {
    let mut key = [0u8; 32];
    for (slot, byte) in key.iter_mut().zip(seed.to_le_bytes()) {
        *slot = byte;
    }
    for (slot, byte) in key[8..].iter_mut().zip(tag.to_le_bytes()) {
        *slot = byte;
    }
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(index);
    rng
}

/// Random choices used by phantoms.
pub(crate) trait RandomChoice: RngCore {
    /// Returns an integer in `0..n`; 0 if `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.next_u32()) * n as u64) >> 32) as usize
    }

    /// Returns a number in `[0, 1)`.
    fn unit(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 / 16_777_216.0
    }

    /// Returns a number in `[low, high)`.
    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Returns true with probability `p`.
    fn chance(&mut self, p: f32) -> bool {
        self.unit() < p
    }

    /// Returns one of the items; `None` for an empty slice.
    fn choose<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.below(items.len())).copied()
    }

    /// Returns one of the phrases; an empty string for an empty slice.
    fn phrase(&mut self, phrases: &[&'static str]) -> &'static str {
        self.choose(phrases).unwrap_or_default()
    }
}

impl<R: RngCore + ?Sized> RandomChoice for R {}
