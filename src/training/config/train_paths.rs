//! Paths and device of a training.

use std::path::PathBuf;

use candle::Device;

/// Device and folders of a training.
#[derive(Clone, Debug)]
pub struct TrainPaths {
    /// Device of the model. A training may resume on another device; its values then differ by rounding.
    pub device: Device,
    /// Output folder: checkpoints, metrics, tokenizer and the finished panel.
    pub out: PathBuf,
    /// Folder of the public data sets, if any.
    pub data: Option<PathBuf>,
}
