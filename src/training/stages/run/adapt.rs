//! Runs a single stage on the weights of an existing panel.

use acem3_experts::TextTokenizer;
use acem3_experts::train::{Parameters, load_checkpoint};
use anyhow::{Context, Result, bail};

use crate::support::files::folder::create_folder;
use crate::training::config::train_config::TrainConfig;
use crate::training::config::train_paths::TrainPaths;
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::stages::context::StageContext;
use crate::training::stages::files::stage_files::remove_intermediate;
use crate::training::stages::files::training_inputs::load_sampler;
use crate::training::stages::metrics::progress::TrainingProgress;
use crate::training::stages::run::preflight::preflight;
use crate::training::stages::run::stage_run::StageRun;

/// Model that [`adapt`] trains.
pub(crate) struct AdaptedModel<'a> {
    /// Initial weights; missing ones are initialised at random.
    pub(crate) parameters: &'a Parameters,
    /// `tokenizer.json` of the panel.
    pub(crate) tokenizer: &'a [u8],
    /// Index of the member to train, whose completions are the training data.
    pub(crate) member: usize,
    /// Text that begins the completions of each member.
    pub(crate) completion_prefixes: &'a [String; 4],
}

/// Runs the first stage of a configuration on existing weights and returns all weights.
///
/// # Errors
/// Returns the errors of [`train`](super::training_run::train()), and an error if the user
/// interrupts the training.
pub(crate) fn adapt(
    config: &TrainConfig,
    model: &AdaptedModel,
    paths: &TrainPaths,
    progress: &TrainingProgress,
) -> Result<Parameters> {
    create_folder(&paths.out)?;
    let sampler = load_sampler(config, paths.data.as_deref())?;
    let tokenizer = TextTokenizer::parse(model.tokenizer)?;
    let builder = SequenceBuilder::new(config, tokenizer)?;
    let builder = builder.with_prefixes(model.completion_prefixes)?;
    let context = StageContext {
        config,
        stage: config.stages.first().context("the configuration has no stage")?,
        sampler: &sampler,
        builder: &builder,
        progress,
        device: &paths.device,
    };
    let names = model.parameters.all().into_iter().map(|(name, _)| name);
    preflight(&[context], &names.collect(), &paths.out)?;
    let run = StageRun {
        context,
        preferences: None,
        member: Some(model.member),
        name: context.stage.name.clone(),
        out: &paths.out,
    };
    let is_finished = run.run(&|| copy_weights(model.parameters))?;
    progress.finish();
    if !is_finished {
        bail!("interrupted\nhint: run the same command to resume");
    }
    remove_intermediate(&paths.out, &run.name)?;
    let tensors = load_checkpoint(&run.checkpoint(), None)?;
    Ok(Parameters::from_tensors(tensors)?)
}

/// Copies weights, because training changes them in place.
fn copy_weights(parameters: &Parameters) -> Result<Parameters> {
    let copies = parameters.all().into_iter().map(|(name, var)| Ok((name, var.copy()?)));
    Ok(Parameters::from_tensors(copies.collect::<candle::Result<Vec<_>>>()?)?)
}
