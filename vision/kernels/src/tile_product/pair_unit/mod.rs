//! Products with the vector instructions for pairs of bf16 values (`AVX512_BF16`).
//!
//! `VDPBF16PS` (Intel's Software Developer's Manual, volume 2) adds two products to each output: first
//! that of the second values of a pair, then that of the first values, and rounds after each. So it
//! computes two operations of a chain ([`super`]) if the pair holds the values of both: those at columns
//! `j + 8` and `j` of a block of 16 columns. Results equal those of the other processors.

mod input;
mod kernel;
mod sizes;
mod task;
mod unit;
mod weights;

pub(super) use self::unit::Bf16PairUnit;
