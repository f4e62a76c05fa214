//! Confidence intervals, significance tests and statistical power.

pub(crate) mod bootstrap;
pub(crate) mod distribution;
pub(crate) mod holm;
pub(crate) mod mcnemar;
pub(crate) mod mean_difference;
pub(crate) mod permutation;
pub(crate) mod power;
pub(crate) mod wilson;
