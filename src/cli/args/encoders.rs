//! What may be typed behind `acem3 encoders`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::OutputFormat;
use crate::checkpoints::hub::HubFlags;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 encoders --probe --out compared
      What a line reads off the features of the embedded encoder and of two untrained ones.
  acem3 encoders embedded my-panel --out compared --data DATA
      A projector trained for each, SLAKE's validation part judged through it.
  acem3 encoders --probe embedded google/siglip-base-patch16-224 --out compared
      A published encoder, downloaded from the hub if it was not before.

An ENCODER is `embedded`, `random:SEED` (the embedded one's sizes, untrained), a panel's folder,
the folder of a published encoder (CLIP, BiomedCLIP, SigLIP, DINOv2), or either as
`owner/name[@revision]` on the hub, with the cache and the environment variables of `judge --panel`.
The first is what the others are compared with. OUT gets the table as JSON and a plot as SVG.";

/// `acem3 encoders`.
#[derive(Args, Clone, Debug)]
pub struct EncodersArgs {
    /// The encoders: names, folders or hub ids [default: embedded random:1 random:2]
    #[arg(value_name = "ENCODER")]
    pub encoders: Vec<String>,
    /// How the hub is used.
    #[command(flatten)]
    pub hub: HubFlags,
    /// Where the table (JSON), the plot (SVG) and the trained panels go
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Linear probes and retrieval on frozen features, without training a projector
    #[arg(long, env = "ACEM3_PROBE", value_parser = FalseyValueParser::new())]
    pub probe: bool,
    /// The folder of public data sets, of which SLAKE is used; phantoms without it
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Phantoms that probes learn from
    #[arg(long, value_name = "N", default_value_t = 600, env = "ACEM3_TRAIN")]
    pub train: u64,
    /// Held-out phantoms, or questions of the data set
    #[arg(long, value_name = "N", default_value_t = 200, env = "ACEM3_TEST")]
    pub test: u64,
    /// Optimisation steps of each projector
    #[arg(long, value_name = "N", default_value_t = 120, env = "ACEM3_STEPS")]
    pub steps: u64,
    /// Sequences in a step
    #[arg(long, value_name = "N", default_value_t = 16, env = "ACEM3_BATCH")]
    pub batch: usize,
    /// Highest learning rate
    #[arg(long, value_name = "RATE", default_value_t = 2e-3, env = "ACEM3_RATE")]
    pub rate: f64,
    /// The seed of the held-out part
    #[arg(long, value_name = "S", default_value_t = 2027, env = "ACEM3_SEED")]
    pub seed: u64,
    /// The form of the table on stdout
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}
