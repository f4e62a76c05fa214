//! Intervals and tests.

pub(crate) mod bootstrap;
pub(crate) mod difference;
pub(crate) mod distribution;
pub(crate) mod holm;
pub(crate) mod mcnemar;
pub(crate) mod power;
pub(crate) mod sign_flip;
pub(crate) mod wilson;
