//! Data sets and tokenizer of a training.

use std::path::Path;

use acem3_experts::TextTokenizer;
use anyhow::{Context, Result};

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::spec::TOKENIZER_FILE;
use crate::support::files::atomic_file;
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::sources::dataset_examples::DatasetExamples;
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::examples::train_tokenizer::train_tokenizer;

/// Number of phantom cases whose texts the tokenizer is trained on.
const TOKENIZER_CASES: u64 = 3000;

/// Loads the data sets, if any, and creates the sampler of a training.
pub(crate) fn load_sampler(config: &TrainConfig, data: Option<&Path>) -> Result<ExampleSampler> {
    let load_data_sets = |data: &Path| {
        let images = ImagePreparation::of_training(config)?;
        DatasetExamples::load(data, images, &config.data_shares)
    };
    let data_sets = data.map(load_data_sets).transpose()?;
    ExampleSampler::new(config, data_sets)
}

/// Returns the tokenizer of an earlier run in this folder or of the initial model, or trains one.
pub(crate) fn load_tokenizer(
    config: &TrainConfig,
    initial_model: Option<&InitialModel>,
    sampler: &ExampleSampler,
    out: &Path,
) -> Result<TextTokenizer> {
    let path = out.join(TOKENIZER_FILE);
    if !path.exists() {
        let json = match initial_model {
            Some(initial_model) => initial_model.tokenizer.to_json()?,
            None => train_tokenizer(config, sampler.texts(TOKENIZER_CASES))?,
        };
        atomic_file::write_atomic(&path, json.as_bytes())?;
    }
    let json = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    TextTokenizer::parse(&json).with_context(|| {
        format!("{}: malformed tokenizer\nhint: delete the file and run again", path.display())
    })
}
