//! Settings of an ablation.

use candle::Device;

use crate::training::measurement::MeasurementConfig;

/// How much is trained and measured.
#[derive(Clone, Debug)]
pub struct AblationConfig {
    /// How often each row is trained, each time with a seed of its own.
    pub seeds: u64,
    /// What each panel is measured on.
    pub plan: MeasurementConfig,
    /// The folder of data sets to train with.
    pub data: Option<std::path::PathBuf>,
    /// Where models are trained and judge.
    pub device: Device,
}
