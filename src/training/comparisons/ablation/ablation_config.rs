//! Settings of an ablation.

use candle::Device;

use crate::judging::knowledge::JudgeKnowledge;
use crate::training::measurement::MeasurementConfig;

/// Number of trainings per variant, and how their panels are measured.
#[derive(Clone, Debug)]
pub struct AblationConfig {
    /// Number of seeds. Every variant is trained once per seed.
    pub seeds: u64,
    /// Settings of the measurement of each panel.
    pub measurement: MeasurementConfig,
    /// Folder of the public data sets to train on, if any.
    pub data: Option<std::path::PathBuf>,
    /// Where the panels look up what they ask, if they may.
    pub knowledge: Option<JudgeKnowledge>,
    /// Folder of a finished run of knowledge introspection, if any.
    pub introspection: Option<std::path::PathBuf>,
    /// Device of training and judging.
    pub device: Device,
}
