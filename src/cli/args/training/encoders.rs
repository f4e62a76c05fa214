//! Arguments of `acem3 encoders`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

use crate::checkpoints::hub::HubArgs;
use crate::cli::args::shared::OutputFormat;

const EXAMPLES: &str = "\
Examples:
  acem3 encoders --probe-only --out results
      Train linear probes on the features of the embedded encoder and of two
      untrained ones
  acem3 encoders embedded my-panel --data DIR --out results
      Train a projector for each encoder and judge SLAKE's validation split
  acem3 encoders --probe-only embedded google/siglip-base-patch16-224 -o out
      Compare with a published encoder from the hub

ENCODER is `embedded`, `random:SEED` (untrained, with the sizes of the embedded encoder), a panel \
folder, the folder of a published encoder (CLIP, BiomedCLIP, SigLIP, DINOv2), or either of these \
on the Hugging Face Hub as `owner/name[@revision]`. The first encoder is the baseline.";

/// Arguments of `acem3 encoders`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct EncodersArgs {
    /// Encoders: names, folders or Hugging Face Hub ids [default: embedded random:1 random:2]
    #[arg(value_name = "ENCODER")]
    pub encoders: Vec<String>,
    /// Write the table (JSON), the plot (SVG) and the trained panels to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Run linear probes and retrieval on frozen features only, without training projectors
    #[arg(long, env = "ACEM3_PROBE_ONLY", value_parser = FalseyValueParser::new())]
    pub probe_only: bool,
    /// Use SLAKE from `DIR/slake` [default: phantoms]
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Train probes on N phantoms
    #[arg(long, value_name = "N", default_value_t = 600, env = "ACEM3_TRAIN_CASES")]
    pub train_cases: u64,
    /// Test on N held-out phantoms, or questions of the data set
    #[arg(long, value_name = "N", default_value_t = 200, env = "ACEM3_TEST_CASES")]
    pub test_cases: u64,
    /// Train each projector for N optimizer steps
    #[arg(long, value_name = "N", default_value_t = 120, env = "ACEM3_STEPS")]
    pub steps: u64,
    /// Train on N sequences per step
    #[arg(long, value_name = "N", default_value_t = 16, env = "ACEM3_BATCH_SIZE")]
    pub batch_size: usize,
    /// Train with RATE as the highest learning rate
    #[arg(long, value_name = "RATE", default_value_t = 2e-3, env = "ACEM3_LEARNING_RATE")]
    pub learning_rate: f64,
    /// Seed the held-out cases with SEED
    #[arg(long, default_value_t = 2027, env = "ACEM3_SEED")]
    pub seed: u64,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}
