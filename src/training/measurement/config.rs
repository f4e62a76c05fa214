//! Settings of a measurement.

use std::path::PathBuf;

/// Test sets and image conditions of a measurement.
#[derive(Clone, Debug)]
pub struct MeasurementConfig {
    /// Number of phantom cases.
    pub phantoms: u64,
    /// Seed of the phantoms and of the sampled wrong answers.
    pub seed: u64,
    /// Folder of the public data sets, if any.
    pub data: Option<PathBuf>,
    /// Labelled cases of the user, if any: a path that `acem3 judge` reads.
    pub cases: Option<PathBuf>,
    /// Maximum number of cases of each data set.
    pub limit: usize,
    /// True to measure with blank and mismatched images too.
    pub tests_image_sensitivity: bool,
}
