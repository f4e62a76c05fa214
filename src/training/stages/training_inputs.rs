//! Data and tokenizer of a training.

use std::path::Path;

use acem3_experts::TextTokenizer;
use anyhow::{Context, Result};

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::spec::TOKENIZER_FILE;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::training::config::train_config::TrainConfig;
use crate::training::config::train_paths::TrainPaths;
use crate::training::examples::dataset_examples::DatasetExamples;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::train_tokenizer::train_tokenizer;
use crate::training::preferences::{read_evaluations, read_preferences};

/// Phantom cases whose texts the tokenizer is trained on.
const TOKENIZER_CASES: u64 = 3000;

/// Loads the data sets, if any, and creates the sampler of a training.
pub(crate) fn load_sampler(config: &TrainConfig, paths: &TrainPaths) -> Result<ExampleSampler> {
    let size = config.model.vision.image_size;
    let load =
        |data: &Path| DatasetExamples::load(data, size, &config.processor(), &config.data_shares);
    let data_sets = paths.data.as_deref().map(load).transpose()?;
    Ok(ExampleSampler::new(config, data_sets))
}

/// Returns the tokenizer of the initial model or of an earlier run in this folder, or trains one.
pub(crate) fn load_tokenizer(
    config: &TrainConfig,
    start: Option<&InitialModel>,
    sampler: &ExampleSampler,
    out: &Path,
) -> Result<TextTokenizer> {
    let path = out.join(TOKENIZER_FILE);
    if !path.exists() {
        let json = match start {
            Some(start) => start.tokenizer.json()?,
            None => train_tokenizer(config, sampler.texts(TOKENIZER_CASES))?,
        };
        atomic_file::write(&path, json.as_bytes())?;
    }
    let json = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    TextTokenizer::parse(&json).with_context(|| {
        format!(
            "{}: malformed tokenizer\nhint: delete the file and run again",
            path.display()
        )
    })
}

/// Returns the hash of all training data except phantoms; `None` if there is no other data.
pub(crate) fn data_digest(
    config: &TrainConfig,
    sampler: &ExampleSampler,
) -> Result<Option<Digest>> {
    let mut digests: Vec<Digest> = sampler.data_digest().into_iter().collect();
    for preferences in config.stages.iter().filter_map(|s| s.preferences.as_ref()) {
        if let Some(file) = &preferences.file {
            digests.push(read_preferences(file)?.digest);
        }
    }
    for evaluations in config.stages.iter().filter_map(|s| s.evaluations.as_ref()) {
        digests.push(read_evaluations(&evaluations.file)?.digest);
    }
    let combine = |first: Digest, second: Digest| {
        Digest::of(&[first.bytes().as_slice(), second.bytes()].concat())
    };
    Ok(digests.into_iter().reduce(combine))
}
