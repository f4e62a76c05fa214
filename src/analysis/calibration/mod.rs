//! Calibration: maps from a judge's scores to the label scale, fitted on labelled responses.
//!
//! Judges differ in how they use the scale, so raw means are not comparable between judges. A
//! calibration stores the hash of its judge and is rejected for any other judge.

mod apply;
mod curve;
mod file;
mod fit;
pub(in crate::analysis) mod reliability_table;
mod tables;

pub(crate) use crate::analysis::calibration::tables::{means_csv_table, means_table};
pub use apply::{CALIBRATED_RECORDS_FORM, CalibratedMean, calibrated_means};
pub use curve::{Curve, Method};
pub use file::{Calibration, CalibrationQuality, FittedMap};
pub use fit::{FitConfig, fit_calibration};
