//! Random choice by a proportion of the configuration.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// Returns true with the probability `proportion`. With 0 it draws no random number, so that a proportion that an
/// earlier training does not have leaves its examples as they are.
pub(crate) fn is_chosen(proportion: f64, rng: &mut ChaCha8Rng) -> bool {
    proportion > 0.0 && rng.random_bool(proportion)
}
