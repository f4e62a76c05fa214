//! Paths and device of a training.

use std::path::PathBuf;

use candle::Device;

/// Device and folders of a training.
#[derive(Clone, Debug)]
pub struct TrainPaths {
    /// Device of the model. No output depends on it, so an interrupted training may resume on
    /// another device.
    pub device: Device,
    /// Output folder: checkpoints, metrics, tokenizer and the finished panel.
    pub out: PathBuf,
    /// Folder of the public data sets, if any.
    pub data: Option<PathBuf>,
}
