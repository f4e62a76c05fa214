//! Configurations and data of trainings.

use acem3::training::TrainConfig;
use acem3::training::preferences;

use super::bundle::Bundle;

/// Reads a `train.toml`.
pub fn read_train(bytes: &[u8]) -> bool {
    // The embedded panel is valid and large.
    if bytes.windows(8).any(|window| window == b"embedded") {
        return false;
    }
    Bundle::of_file("train.toml", bytes).read("train.toml", |path| TrainConfig::read(path).is_ok())
}

/// Reads a JSONL file of preference pairs or evaluations.
pub fn read_preferences(bytes: &[u8]) -> bool {
    Bundle::of_file("a.jsonl", bytes).read("a.jsonl", |path| {
        let pairs = preferences::read_preferences(path);
        let evaluations = preferences::read_evaluations(path);
        pairs.is_ok() || evaluations.is_ok()
    })
}
