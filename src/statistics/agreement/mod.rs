//! Statistics of agreement between raters.

pub mod accuracy;
pub(crate) mod alpha;
pub(crate) mod cells;
pub(crate) mod correlation;
pub(crate) mod deviation;
pub(crate) mod fleiss;
pub(crate) mod icc;
pub(crate) mod kappa;
pub(crate) mod ratings;
