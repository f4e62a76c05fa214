//! Statistics of agreement between raters.

pub mod accuracy;
pub(crate) mod alpha;
pub(crate) mod auc;
pub(crate) mod contingency;
pub(crate) mod correlation;
pub(crate) mod fleiss;
pub(crate) mod icc;
pub(crate) mod kappa;
mod levels;
pub(crate) mod ratings;
pub(crate) mod score_error;
