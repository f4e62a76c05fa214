//! What may be typed behind `acem3 train`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DeviceArgs, IntrospectArgs, OutputFormat};
use crate::checkpoints::hub::HubFlags;
use crate::support::device::DeviceChoice;
use crate::training::ablation::AblationStudy;

/// Training and its measures.
#[derive(Args, Clone, Debug)]
pub struct TrainArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TrainCommand,
}

/// What is done with a training.
#[derive(Subcommand, Clone, Debug)]
pub enum TrainCommand {
    /// Train a panel from a configuration file, or go on where it was interrupted
    Run(TrainRunArgs),
    /// Measure a panel: on phantoms, and on the parts of the data sets it was not trained on
    ///
    /// Each share comes with its 95 % interval, clustered by image: whole images are drawn again, not
    /// questions. Where that cannot tell a spread (fewer than ten images, or all values equal), it is
    /// Wilson's interval over the images, which is wide.
    Eval(TrainEvalArgs),
    /// What a part of the training is worth: the same with one thing changed, several seeds each
    ///
    /// Every row is trained and measured on phantoms (and, with --data, on the held-out parts of the data
    /// sets) once for each seed; what is finished is not done again. A configuration with `start = ...` trains
    /// what the table is about alone. Writes the table as Markdown, JSON and SVG.
    Table(TrainAblateArgs),
    /// Mend what a panel learns from where it judges wrong, and train it again, round after round
    ///
    /// Each round trains the configuration's panel, judges the cases with it, asks for better evaluations of those
    /// that it judged wrong, and puts those that agree with what people said into the data of the next round. What no
    /// suggestion agrees on is left to a person, in `unresolved.jsonl`. Writes the rounds as Markdown, JSON and SVG;
    /// the last round's panel is in its folder `training/panel`.
    Introspect(IntrospectArgs),
}

/// Which table, and of how much.
#[derive(Args, Clone, Debug)]
pub struct TrainAblateArgs {
    /// The configuration whose parts are asked about; at least one of its stages learns preferences (TOML)
    pub config: PathBuf,
    /// What the rows are
    #[arg(long, value_enum, default_value = "ablation", env = "ACEM3_ROWS")]
    pub rows: AblationStudy,
    /// Where trainings go, and the table
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// How often each row is trained, from the configuration's seed on
    #[arg(long, value_name = "N", default_value_t = 3, env = "ACEM3_SEEDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// Phantom cases to measure on
    #[arg(long, value_name = "N", default_value_t = 200, env = "ACEM3_PHANTOMS")]
    pub phantoms: u64,
    /// The seed of what is measured on; not one of `data phantoms` or `data preferences` that were learned from
    #[arg(long, value_name = "N", default_value_t = 2027, env = "ACEM3_SEED")]
    pub seed: u64,
    /// The folder of public data sets, to train with and to measure on; phantoms alone without it
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Questions of each data set to measure on
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT")]
    pub limit: Option<usize>,
    /// Where to train and to judge: auto, cpu, cuda or cuda:1
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// The form of the table on stdout
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// How the hub is used, where the configuration begins with a checkpoint there.
    #[command(flatten)]
    pub hub: HubFlags,
}

/// What to train, and where.
#[derive(Args, Clone, Debug)]
pub struct TrainRunArgs {
    /// The configuration: model, tokenizer and stages (TOML)
    pub config: PathBuf,
    /// Where checkpoints and metrics go, and the finished panel (in its folder `panel`)
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// The folder of public data sets (`slake`, `vqa_rad`, `path_vqa`, `answers`); phantoms alone without it
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Where to compute: auto, cpu, cuda or cuda:1; an interrupted training may go on elsewhere
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// How the hub is used, where the configuration begins with a checkpoint there.
    #[command(flatten)]
    pub hub: HubFlags,
}

/// What to measure.
#[derive(Args, Clone, Debug)]
pub struct TrainEvalArgs {
    /// The panel: a folder, or `owner/name[@revision]` on the hub; without it, the small one inside
    /// this program
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// How the hub is used.
    #[command(flatten)]
    pub hub: HubFlags,
    /// The folder of public data sets; phantoms alone without it
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// How many phantom cases; 0 for none, with --data
    #[arg(long, value_name = "N", default_value_t = 500, env = "ACEM3_PHANTOMS")]
    pub phantoms: u64,
    /// The seed of phantoms and wrong answers
    #[arg(long, value_name = "S", default_value_t = 2027, env = "ACEM3_SEED")]
    pub seed: u64,
    /// Only the first cases of each data set
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT", value_parser = at_least_one)]
    pub limit: Option<usize>,
    /// Where it computes.
    #[command(flatten)]
    pub place: DeviceArgs,
    /// The form of the figures
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "expected a whole number of at least 1".to_owned())
}
