//! Statistics of agreement, comparison and calibration, on plain numbers.
//!
//! | question | functions and types |
//! |---|---|
//! | do two raters agree | [`ContingencyCells`] with [`kappa()`], [`pearson`], [`spearman`], [`kendall`], [`mean_absolute`], [`bias`] |
//! | do several raters agree | [`RatingMatrix`] with [`alpha()`], [`fleiss()`], [`icc()`], [`icc_one_way()`] |
//! | how accurate are the orders of a judge | [`accuracy`] |
//! | how well does a value separate two groups | [`auc()`] |
//! | how certain is a value | [`Clusters`], [`Bootstrap`], [`Estimate`], [`proportion_interval`] |
//! | do two judges differ | [`paired_difference`], [`mcnemar()`], [`holm_adjust`], [`minimum_detectable_effect`] |
//! | which model is best | [`Davidson`], [`paired_permutation_test`] |
//! | which model is best at equal length | [`Logistic`] |
//! | which class does a text belong to | [`LinearSvm`] with [`PlattScaling`] |
//! | how do scores map to another scale | [`Isotonic`], [`LinearFit`], [`reliability()`] |
//!
//! A function whose value can be undefined returns [`Defined`]: a finite value, or the reason why
//! it is undefined. No function returns NaN, or zero for a missing value.
//!
//! Statistics of two or more raters are functions of *weighted* data: a case that is resampled
//! twice has weight two. So a bootstrap resample costs one pass over the data and copies nothing.

pub mod agreement;
pub mod inference;
mod mean;
pub mod regression;
mod undefined;

pub use crate::statistics::agreement::alpha::{DistanceMetric, alpha};
pub use crate::statistics::agreement::auc::auc;
pub use crate::statistics::agreement::contingency::{ContingencyCells, ContingencyTable};
pub use crate::statistics::agreement::correlation::{kendall, pearson, spearman};
pub use crate::statistics::agreement::fleiss::fleiss;
pub use crate::statistics::agreement::icc::{Icc, IccForm, RatingMeanSquares, icc, icc_one_way};
pub use crate::statistics::agreement::kappa::{Weighting, kappa};
pub use crate::statistics::agreement::ratings::{RatedUnits, RatingMatrix};
pub use crate::statistics::agreement::score_error::{bias, mean_absolute};
pub use crate::statistics::inference::bootstrap::{
    Bootstrap, Clusters, Estimate, ReplicateRng, percentile_interval, two_sided_p,
};
pub use crate::statistics::inference::distribution::{
    binomial_tail, f_quantile, student_quantile, student_two_sided_p,
};
pub use crate::statistics::inference::holm::holm_adjust;
pub use crate::statistics::inference::mcnemar::{McNemar, mcnemar};
pub use crate::statistics::inference::mean_difference::{MeanDifference, paired_difference};
pub use crate::statistics::inference::permutation::paired_permutation_test;
pub use crate::statistics::inference::power::minimum_detectable_effect;
pub use crate::statistics::inference::wilson::{
    MIN_CLUSTERS, proportion_interval, wilson_interval,
};
pub use crate::statistics::regression::davidson::Davidson;
pub use crate::statistics::regression::isotonic::Isotonic;
pub use crate::statistics::regression::least_squares::LinearFit;
pub use crate::statistics::regression::linear_svm::{LinearSvm, SvmSettings};
pub use crate::statistics::regression::logistic::{Logistic, LogisticObservation};
pub use crate::statistics::regression::pairwise_outcomes::PairwiseOutcomes;
pub use crate::statistics::regression::platt::PlattScaling;
pub use crate::statistics::regression::reliability::{Reliability, ReliabilityBin, reliability};
pub use mean::{mean, mean_interval, mean_over_table};
pub use undefined::{Defined, RatingColumn, Undefined};
