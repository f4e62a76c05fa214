//! Fitted curves and models.

pub(crate) mod davidson;
pub(crate) mod isotonic;
pub(crate) mod line;
pub(crate) mod linear;
pub(crate) mod logistic;
pub(crate) mod reliability;
