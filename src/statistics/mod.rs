//! Statistics of agreement, comparison and calibration, on numbers alone: no file, no record, no print.
//!
//! | question | where |
//! |---|---|
//! | do two raters give the same scores | [`Cells`] with [`kappa()`], [`pearson`], [`spearman`], [`kendall`], [`mean_absolute`], [`bias`] |
//! | do several raters | [`Ratings`] with [`alpha()`], [`fleiss()`], [`icc()`], [`icc_one_way()`] |
//! | do two judges order pairs alike | [`accuracy`] |
//! | how sure is a number | [`Clusters`], [`Bootstrap`], [`Estimate`], [`share_interval`] |
//! | do two judges differ | [`difference()`], [`mcnemar()`], [`holm()`], [`smallest_detectable`] |
//! | which model is best | [`Davidson`], [`sign_flip()`] |
//! | and if all answers were as long as each other | [`Logistic`] |
//! | what does a score mean on another scale | [`Isotonic`], [`Line`], [`reliability()`] |
//!
//! What a statistic cannot say it does not say: every function gives [`Defined`], whose error is the
//! reason in words, and never a value that is no number, nor a zero in its place.
//!
//! Statistics of two or more raters are functions of *weighted* data, in which a case that was drawn
//! twice weighs two. So a draw of the bootstrap costs one pass over what is there and copies nothing.

pub mod accuracy;
mod alpha;
mod bootstrap;
mod cells;
mod correlation;
mod davidson;
mod deviation;
mod difference;
mod distribution;
mod fleiss;
mod holm;
mod icc;
mod isotonic;
mod kappa;
mod line;
mod linear;
mod logistic;
mod mcnemar;
mod mean;
mod power;
mod ratings;
mod reliability;
mod sign_flip;
mod undefined;
mod wilson;

pub use alpha::{Metric, alpha};
pub use bootstrap::{Bootstrap, Clusters, Estimate, Random, interval, two_sided};
pub use cells::{Cells, Table};
pub use correlation::{kendall, pearson, spearman};
pub use davidson::{Davidson, Outcomes};
pub use deviation::{bias, mean_absolute};
pub use difference::{Difference, difference};
pub use distribution::{binomial_tail, f_quantile};
pub use fleiss::fleiss;
pub use holm::holm;
pub use icc::{Icc, IccForm, Squares, icc, icc_one_way};
pub use isotonic::Isotonic;
pub use kappa::{Weighting, kappa};
pub use line::Line;
pub use logistic::{Logistic, Observation};
pub use mcnemar::{McNemar, mcnemar};
pub use mean::{mean, mean_interval, mean_of};
pub use power::smallest_detectable;
pub use ratings::{Ratings, Units};
pub use reliability::{Bin, Reliability, reliability};
pub use sign_flip::sign_flip;
pub use undefined::{Defined, Side, Undefined};
pub use wilson::{FEW, share_interval, wilson};
