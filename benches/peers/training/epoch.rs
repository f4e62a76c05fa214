//! An epoch of DPO with a decoder of 12 layers on generated preference pairs.

use std::path::Path;

use acem3::training::TrainConfig;
use acem3_experts::ModelConfig;
use acem3_experts::prompt::PromptToken;
use acem3_experts::train::{
    Batch, DpoLossConfig, Optimizer, OptimizerConfig, Parameters, PreferenceExample, Schedule,
    Sequence, SequenceInput, TrainableModel, Trainer,
};
use anyhow::{Result, ensure};
use candle::{DType, Tensor};

const LAYERS: usize = 12;
/// Frozen layers of a partly frozen model.
pub(crate) const FROZEN_LAYERS: usize = 9;
const VOCABULARY: u32 = 4096;
/// Tokens of the prompt.
pub(crate) const PROMPT_TOKENS: u32 = 160;
/// Tokens of each of the two completions.
pub(crate) const COMPLETION_TOKENS: u32 = 160;
/// Preference pairs per epoch.
pub(crate) const EPOCH_SIZE: u32 = 16;
/// Preference pairs per step.
pub(crate) const BATCH_SIZE: usize = 8;
/// Preference pairs per shard: the part of a batch that one forward pass processes.
pub(crate) const SHARD_SIZE: usize = 4;
const LOSS_CONFIG: DpoLossConfig =
    DpoLossConfig { beta: 0.1, nll_weight: 0.0, consistency_weight: 0.0 };

/// Returns the configuration of the model.
pub(crate) fn model_config() -> Result<ModelConfig> {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
    let mut model = TrainConfig::read(&config)?.model;
    model.decoder.num_hidden_layers = LAYERS;
    model.decoder.vocab_size = VOCABULARY as usize;
    Ok(model)
}

/// Generates sequences of a prompt and two completions from pseudo-random tokens. A third of the
/// tokens of each completion are targets.
pub(crate) fn generate_sequences() -> Vec<Sequence> {
    let token = |i: u32| i.wrapping_mul(2_654_435_761) % VOCABULARY;
    let sequence = |n: u32| {
        let prompt: Vec<PromptToken> =
            (0..PROMPT_TOKENS).map(|i| PromptToken::Token(token(n + i))).collect();
        let mut sequence = Sequence::new(&prompt, None);
        for completion in 0..2 {
            let weight = |i: u32| f32::from(u8::from(i.is_multiple_of(3)));
            let tokens =
                (0..COMPLETION_TOKENS).map(|i| (token(n * 31 + i * 7 + completion), weight(i)));
            sequence.push_branch(tokens);
        }
        sequence
    };
    (0..EPOCH_SIZE).map(sequence).collect()
}

/// Creates a model and its trainer. The vision tower, the projector and the lower `frozen_layers`
/// layers of the decoder are frozen.
pub(crate) fn create_model(frozen_layers: usize) -> Result<(TrainableModel, Trainer)> {
    let mut frozen: Vec<String> =
        vec!["model.vision_tower.".to_owned(), "model.mm_projector.".to_owned()];
    if frozen_layers > 0 {
        frozen.push("model.embed_tokens.".to_owned());
    }
    frozen.extend((0..frozen_layers).map(|i| format!("model.layers.{i}.")));
    let parameters = Parameters::uninitialized(1).freeze(&frozen);
    let model = TrainableModel::load(&parameters.builder(), &model_config()?, frozen_layers)?;
    let schedule = Schedule { peak: 1e-5, warmup: 1, steps: 1000, floor: 1.0 };
    let optimizer = Optimizer::new(parameters.trainable(), OptimizerConfig::default());
    Ok((model, Trainer::new(optimizer, schedule, 1.0)))
}

/// Builds preference pairs from sequences, with `model` as the reference model.
pub(crate) fn preference_pairs(
    model: &TrainableModel,
    sequences: &[Sequence],
) -> Result<Vec<PreferenceExample>> {
    let mut pairs = Vec::new();
    for sequences in sequences.chunks(SHARD_SIZE) {
        let log_likelihoods = model.log_likelihoods(&Batch(sequences))?;
        let examples = sequences.iter().cloned().zip(log_likelihoods);
        pairs.extend(examples.map(|(sequence, reference_log_likelihoods)| PreferenceExample {
            sequence,
            reference_log_likelihoods,
            other_order: None,
        }));
    }
    Ok(pairs)
}

/// Trains one epoch on preference pairs.
pub(crate) fn train_epoch(
    model: &TrainableModel,
    trainer: &mut Trainer,
    pairs: &[PreferenceExample],
) -> Result<()> {
    for batch in pairs.chunks(BATCH_SIZE) {
        let shards: Vec<_> = batch.chunks(SHARD_SIZE).collect();
        let step = trainer.step(&shards, |shard| model.preference_loss(shard, LOSS_CONFIG))?;
        ensure!(step.loss.is_finite(), "the loss is not finite");
    }
    Ok(())
}

/// Outputs of the frozen layers for all sequences, and the pairs with their reference
/// log-likelihoods.
pub(crate) struct FrozenCache {
    outputs: Vec<Tensor>,
    pairs: Vec<PreferenceExample>,
}

impl FrozenCache {
    /// Computes the cache, as the first epoch does.
    pub(crate) fn new(model: &TrainableModel, sequences: &[Sequence]) -> Result<Self> {
        let mut outputs = Vec::new();
        for batch in sequences.chunks(SHARD_SIZE) {
            for output in model.trunk_output(&Batch(batch))? {
                outputs.push(output.to_dtype(DType::F16)?);
            }
        }
        let sequences = sequences.iter().zip(&outputs).map(with_output);
        let pairs = preference_pairs(model, &sequences.collect::<Result<Vec<_>>>()?)?;
        Ok(Self { outputs, pairs })
    }

    /// Reads the pairs of an epoch.
    pub(crate) fn read(&self) -> Result<Vec<PreferenceExample>> {
        let cached = self.pairs.iter().zip(&self.outputs);
        let read = cached.map(|(pair, output)| {
            let sequence = with_output((&pair.sequence, output))?;
            Ok(PreferenceExample { sequence, ..pair.clone() })
        });
        read.collect()
    }
}

/// Returns a sequence whose input is a cached output.
fn with_output((sequence, output): (&Sequence, &Tensor)) -> Result<Sequence> {
    let mut sequence = sequence.clone();
    sequence.input = SequenceInput::Hidden(output.to_dtype(DType::F32)?);
    Ok(sequence)
}
