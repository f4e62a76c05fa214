//! Fitted curves and models.

pub(crate) mod davidson;
pub(crate) mod isotonic;
pub(crate) mod least_squares;
pub(crate) mod linear_solver;
pub(crate) mod logistic;
pub(crate) mod reliability;
