//! Settings of a measurement.

use std::path::PathBuf;

/// What is measured.
#[derive(Clone, Debug)]
pub struct MeasurementConfig {
    /// Phantom cases.
    pub phantoms: u64,
    /// The seed of phantoms and wrong answers.
    pub seed: u64,
    /// The folder of public data sets.
    pub data: Option<PathBuf>,
    /// Cases of each data set.
    pub limit: usize,
    /// Whether to judge with the image blanked and exchanged, too.
    pub blinded: bool,
}
