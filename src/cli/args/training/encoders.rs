//! Arguments of `acem3 encoders`.

use std::path::PathBuf;

use acem3_projector::{PooledProjection, ProjectorKind};
use clap::Args;

use crate::checkpoints::hub::HubArgs;
use crate::cli::args::shared::value_parsers::parse_at_least_one;
use crate::cli::args::shared::{DeviceArgs, TableFormat};
use crate::support::terminal::switch::parse_switch;

const EXAMPLES: &str = "\
Examples:
  acem3 encoders --probe-only --out results
      Train linear probes on the features of the embedded encoder and of two
      untrained ones
  acem3 encoders embedded my-tower --data DIR --out results
      Train a projector for each encoder under the embedded panel's decoders and
      judge held-out questions of SLAKE and VQA-RAD
  acem3 encoders clip siglip --panel llava-7b --lora 16 --data DIR --out results
      Also adapt the members of another base
  acem3 encoders --probe-only embedded google/siglip-base-patch16-224 -o out
      Compare with a published encoder from the hub

ENCODER is `embedded`, `random:SEED` (untrained, with the sizes of the embedded encoder), a panel \
folder, the folder of a published encoder (CLIP, PubMedCLIP, BiomedCLIP, SigLIP, DINOv2, InternViT), \
the folder of a checkpoint with a vision tower (LLaVA, InternVL, Gemma 3), or any of these on the \
Hugging Face Hub as `owner/name[@revision]`. The first encoder is the baseline.

Run the same command again to resume an interrupted comparison. More encoders at the end of the \
list, or a larger --seeds, continue it too.";

/// Arguments of `acem3 encoders`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct EncodersArgs {
    /// Encoders: names, folders or Hugging Face Hub ids [default: embedded random:1 random:2]
    #[arg(value_name = "ENCODER")]
    pub encoders: Vec<String>,
    /// Write the tables (JSON, CSV, Markdown), the plot (SVG) and the trained panels to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Run linear probes and retrieval on frozen features only, without training projectors
    #[arg(long, env = "ACEM3_PROBE_ONLY", value_parser = parse_switch)]
    pub probe_only: bool,
    /// Judge with the decoders of PANEL: a panel or checkpoint folder, or `owner/name[@revision]`
    /// on the Hugging Face Hub [default: the embedded panel]
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// Use SLAKE and VQA-RAD from `DIR/slake` and `DIR/vqa_rad` (probes: SLAKE) [default: phantoms]
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Train probes on N phantoms
    #[arg(long, value_name = "N", default_value_t = 600, env = "ACEM3_TRAIN_CASES")]
    pub train_cases: u64,
    /// Test on N held-out phantoms, or questions of the data sets
    #[arg(long, value_name = "N", default_value_t = 200, env = "ACEM3_TEST_CASES")]
    pub test_cases: u64,
    /// Train each projector for N optimizer steps
    #[arg(long, value_name = "N", default_value_t = 120, env = "ACEM3_STEPS")]
    pub steps: u64,
    /// Train on N sequences per step
    #[arg(long, value_name = "N", default_value_t = 16, env = "ACEM3_BATCH_SIZE")]
    pub batch_size: usize,
    /// Train projectors with RATE as the highest learning rate
    #[arg(long, value_name = "RATE", default_value_t = 2e-3, env = "ACEM3_LEARNING_RATE")]
    pub learning_rate: f64,
    /// After the projector, train the N upper layers of each member
    #[arg(long, value_name = "N", env = "ACEM3_LAYERS", conflicts_with = "lora")]
    #[arg(value_parser = parse_at_least_one::<usize>)]
    pub layers: Option<usize>,
    /// After the projector, train LoRA adapters of this rank for each member
    #[arg(long, value_name = "RANK", env = "ACEM3_LORA")]
    #[arg(value_parser = parse_at_least_one::<usize>)]
    pub lora: Option<usize>,
    /// Train each member for N optimizer steps with --layers or --lora [default: the value of
    /// --steps]
    #[arg(long, value_name = "N", env = "ACEM3_MEMBER_STEPS")]
    #[arg(value_parser = parse_at_least_one::<u64>)]
    pub member_steps: Option<u64>,
    /// Train members with RATE as the highest learning rate
    #[arg(long, value_name = "RATE", default_value_t = 2e-4, env = "ACEM3_MEMBER_LEARNING_RATE")]
    pub member_learning_rate: f64,
    /// Projector: linear, `mlp2x_gelu`, `pixel_shuffle:F` (joins F × F patches to one image token)
    /// or `pooled:S` (averages to S × S image tokens) [default: that of the base]
    #[arg(long, value_name = "KIND", env = "ACEM3_PROJECTOR", value_parser = parse_projector)]
    pub projector: Option<ProjectorKind>,
    /// Use the class token of an encoder as an image token too
    #[arg(long, env = "ACEM3_CLASS_TOKEN", value_parser = parse_switch)]
    pub class_token: bool,
    /// Let the base read N tokens, more than its own context; it was not trained on these positions
    #[arg(long, value_name = "N", env = "ACEM3_CONTEXT")]
    #[arg(value_parser = parse_at_least_one::<usize>)]
    pub context: Option<usize>,
    /// Train every encoder with N seeds, starting with --seed
    #[arg(long, value_name = "N", default_value_t = 1, env = "ACEM3_SEEDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// Seed the held-out cases and the training with SEED
    #[arg(long, default_value_t = 2027, env = "ACEM3_SEED")]
    pub seed: u64,
    /// The device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
}

/// Epsilon of the norm of a pooled projector, as in Gemma 3.
const POOLED_NORM_EPS: f64 = 1e-6;

/// Parses the value of `--projector`.
fn parse_projector(text: &str) -> Result<ProjectorKind, String> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(parse_at_least_one::<usize>(number)?)),
        None => (text, None),
    };
    match (name, number) {
        ("linear", None) => Ok(ProjectorKind::Linear),
        ("mlp2x_gelu", None) => Ok(ProjectorKind::Mlp2xGelu),
        ("pixel_shuffle", Some(factor)) => Ok(ProjectorKind::PixelShuffle { factor }),
        ("pooled", Some(tokens_per_side)) => Ok(ProjectorKind::Pooled(PooledProjection {
            tokens_per_side,
            norm_eps: POOLED_NORM_EPS,
        })),
        _ => Err("expected linear, mlp2x_gelu, pixel_shuffle:F or pooled:S".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projectors_are_parsed() {
        assert_eq!(parse_projector("linear"), Ok(ProjectorKind::Linear));
        assert_eq!(
            parse_projector("pixel_shuffle:2"),
            Ok(ProjectorKind::PixelShuffle { factor: 2 })
        );
        assert!(matches!(parse_projector("pooled:4"), Ok(ProjectorKind::Pooled(_))));
        for invalid in ["mlp", "linear:2", "pixel_shuffle", "pixel_shuffle:0", "pooled:x"] {
            assert!(parse_projector(invalid).is_err(), "{invalid}");
        }
    }
}
