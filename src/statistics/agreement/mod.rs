//! Statistics of agreement between raters.

mod levels;
pub mod accuracy;
pub(crate) mod alpha;
pub(crate) mod contingency;
pub(crate) mod correlation;
pub(crate) mod fleiss;
pub(crate) mod icc;
pub(crate) mod kappa;
pub(crate) mod ratings;
pub(crate) mod score_error;
