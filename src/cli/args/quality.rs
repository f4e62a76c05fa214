//! Arguments of `acem3 data quality`.

use std::path::PathBuf;

use clap::Args;

use super::shared::OutputFormat;
use crate::checkpoints::hub::HubArgs;
use crate::support::device::DeviceChoice;

const EXAMPLES: &str = "\
Examples:
  acem3 data quality evaluations.jsonl --out rated.jsonl
      Predict qualities from text statistics
  acem3 data quality evaluations.jsonl --out rated.jsonl \
--embeddings princeton-nlp/sup-simcse-bert-base-uncased
      Predict them from sentence embeddings, and print whether these help";

/// Arguments of `acem3 data quality`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct QualityArgs {
    /// Evaluations: JSONL with `prompt`, `completion` (or `chosen`) and, if rated, `quality`
    #[arg(value_name = "FILE")]
    pub path: PathBuf,
    /// Write the lines to FILE; `quality` becomes the probability that the evaluation belongs to
    /// the better-rated half, and ratings move to `rated`
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Seed the folds and the confidence interval with SEED
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
    /// Print the result in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// The encoder.
    #[command(flatten)]
    pub encoder: SentenceEncoderArgs,
}

/// Arguments of the sentence encoder.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sentence embeddings")]
pub struct SentenceEncoderArgs {
    /// Classify sentence embeddings of this BERT or RoBERTa with a support vector machine
    /// (AutoMedEval), and compare with text statistics: a folder of `SimCSE` or
    /// sentence-transformers, or `owner/name[@revision]` on the Hugging Face Hub
    #[arg(long, value_name = "MODEL", env = "ACEM3_EMBEDDINGS")]
    pub embeddings: Option<String>,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Compute embeddings on this device: auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
}
