//! A judge's scores on the scale of people: a map fitted on labelled responses, and applied to others.
//!
//! A raw mean of judge scores says as much about the judge as about the answers. The map belongs to the
//! judge whose scores it was fitted on, by hash, and is refused for any other.

mod apply;
mod curve;
mod file;
mod fit;
mod tables;

pub(crate) use crate::analysis::calibration::tables::{means_csv_table, means_table};
pub use apply::{CalibratedMean, means};
pub use curve::{Curve, Method};
pub use file::{Calibration, CalibrationQuality, FittedMap};
pub use fit::{FitConfig, fit};
