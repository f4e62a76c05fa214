//! An exponential that the compiler can vectorise.
//!
//! The C library's `expf` needs one call per number, and the last bit of its result differs between
//! systems.

/// `1.5 · 2²³`. Adding it rounds a small number to an integer in the low bits of the mantissa.
const ROUNDING_SHIFT: f32 = 12_582_912.;
/// Smaller inputs give 0, because `eˣ` is then not a normal f32.
const MIN_INPUT: f32 = -87.3;
/// Larger inputs give `e⁸⁸`, because `eˣ` overflows above 88.7.
const MAX_INPUT: f32 = 88.;

/// Computes `eˣ` with a relative error below 2·10⁻⁷. Returns 0 below −87.3, `e⁸⁸` above 88, and NaN
/// for NaN.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of functions that enable vector instructions")]
pub(crate) fn exp(x: f32) -> f32 {
    let clamped = if x > MAX_INPUT { MAX_INPUT } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUNDING_SHIFT;
    let n = shifted - ROUNDING_SHIFT;
    // ln 2 in two parts, the first short enough that its product with `n` is exact (Cody and
    // Waite).
    let r = clamped - n * (355. / 512.) - n * -2.121_944_4e-4;
    let series = 1.987_569_1e-4 * r + 1.398_199_9e-3;
    let series = series * r + 8.333_452e-3;
    let series = series * r + 4.166_579_6e-2;
    let series = series * r + 1.666_666_5e-1;
    let series = series * r + 0.5;
    let fraction = series * r * r + r + 1.;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if x < MIN_INPUT { 0. } else { fraction * power }
}

/// Computes the logistic function `1 / (1 + e⁻ˣ)`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of functions that enable vector instructions")]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1. / (1. + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_f64_exponential() {
        for i in -870_000..880_000 {
            let x = i as f32 * 1e-4;
            let want = f64::from(x).exp();
            let error = (f64::from(exp(x)) - want).abs() / want;
            assert!(error < 2e-7, "exp({x}) = {}, error {error}", exp(x));
        }
    }

    #[test]
    fn extreme_inputs_are_clamped() {
        assert!(exp(f32::NEG_INFINITY).abs() < f32::MIN_POSITIVE);
        assert!(exp(-1e9).abs() < f32::MIN_POSITIVE);
        assert!(exp(f32::INFINITY).is_finite() && exp(f32::INFINITY) > 1e38);
        assert!(exp(f32::NAN).is_nan());
        assert!((sigmoid(f32::INFINITY) - 1.).abs() < 1e-9);
        assert!(sigmoid(f32::NEG_INFINITY) < 1e-37);
    }
}
