//! Fitted curves and models.

mod cholesky;
pub(crate) mod davidson;
pub(crate) mod isotonic;
pub(crate) mod least_squares;
pub(crate) mod linear_solver;
pub(crate) mod linear_svm;
pub(crate) mod logistic;
pub(crate) mod pairwise_outcomes;
pub(crate) mod platt;
pub(crate) mod reliability;
