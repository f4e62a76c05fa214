//! Products of a few rows with a matrix whose rows are read in groups of lanes.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

/// Columns that are computed together: two registers of AVX2, four of NEON.
pub(super) const LANES: usize = 16;

/// Adds `x · matrix` to the sums. Row `k` of the matrix begins at `matrix[k · stride]`.
///
/// The products of a sum are added in the order of `k`, so a sum does not depend on `R`. With four
/// rows, the sums stay in registers.
#[inline(always)]
pub(super) fn add_products<const R: usize>(
    x: [&[f32]; R],
    matrix: &[f32],
    stride: usize,
    sums: &mut [[f32; LANES]; R],
) {
    // The compiler keeps a local array in registers.
    let mut registers = *sums;
    let depth = x.first().map_or(0, |x| x.len());
    let x = x.map(|x| &x[..depth]);
    for k in 0..depth {
        let Some(weights) = matrix[k * stride..].first_chunk::<LANES>() else {
            break;
        };
        for r in 0..R {
            let value = x[r][k];
            for lane in 0..LANES {
                registers[r][lane] = value.mul_add(weights[lane], registers[r][lane]);
            }
        }
    }
    *sums = registers;
}
