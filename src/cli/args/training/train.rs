//! Arguments of `acem3 train`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::introspect::IntrospectArgs;
use crate::checkpoints::hub::HubArgs;
use crate::cli::args::shared::value_parsers::parse_at_least_one;
use crate::cli::args::shared::{DeviceArgs, KnowledgeArgs, OutputFormat, SamplesArgs};
use crate::support::device::DeviceChoice;
use crate::support::terminal::switch::parse_switch;
use crate::support::terminal::verbosity::ProgressMode;
use crate::training::comparisons::ablation::AblationStudy;

/// Arguments of `acem3 train`.
#[derive(Args, Clone, Debug)]
pub struct TrainArgs {
    /// The command to run.
    #[command(subcommand)]
    pub command: TrainCommand,
}

/// The commands of `acem3 train`.
#[derive(Subcommand, Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "parsed once, never stored in a collection")]
pub enum TrainCommand {
    /// Train a panel from a configuration file, or resume an interrupted training run
    Run(TrainRunArgs),
    /// Evaluate a panel on phantoms and on held-out splits of public data sets
    ///
    /// Proportions have 95 % bootstrap intervals, clustered by image. With fewer than ten images,
    /// or if all values are equal, they have Wilson intervals over the images. Prints the table of
    /// each set as soon as it is complete; after Ctrl-C, that of the pairs judged so far.
    Eval(TrainEvalArgs),
    /// Run an ablation: repeat the training with one setting changed, over several seeds
    ///
    /// Every variant is trained and evaluated once per seed, on phantoms and, with --data, on
    /// held-out splits of public data sets. Finished training runs are not repeated. To skip the
    /// earlier stages, start from a trained panel (key `start` of the configuration) and list only
    /// the stages under study. Writes the table as Markdown, JSON and SVG.
    Ablate(TrainAblateArgs),
    /// Improve the training data from misjudged cases and retrain, for several rounds (knowledge
    /// introspection)
    ///
    /// Each round trains the panel, judges the cases, requests better evaluations of the misjudged
    /// ones, and adds those that agree with the labels to the data of the next round. With
    /// --reviewer, a second judge has to agree. Cases without such an evaluation are listed in
    /// `unresolved.jsonl`, and people decide about them (--decisions). The cases need labels of the
    /// final score. Writes the rounds as Markdown, JSON and SVG; the last panel is in
    /// `training/panel` of the last round.
    Introspect(IntrospectArgs),
}

/// Arguments of `acem3 train run`.
#[derive(Args, Clone, Debug)]
pub struct TrainRunArgs {
    /// Training configuration: model, tokenizer and stages (TOML)
    pub config: PathBuf,
    /// Write checkpoints, metrics and the panel (in `panel`) to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Train on the public data sets in DIR too (subfolders `slake`, `vqa_rad`, `path_vqa` and
    /// `answers`) [default: phantoms only]
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Compute on this device: auto, cpu, cuda or cuda:N; a resumed run may use another device
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// The use of the hub, for a configuration that starts from a checkpoint there.
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Arguments of `acem3 train eval`.
#[derive(Args, Clone, Debug)]
pub struct TrainEvalArgs {
    /// Evaluate PANEL: a folder, or `owner/name[@revision]` on the Hugging Face Hub [default: the
    /// embedded panel]
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// Evaluate on N phantom cases [default: 500, or 0 with --cases]
    #[arg(long, value_name = "N", env = "ACEM3_PHANTOMS")]
    pub phantoms: Option<u64>,
    /// Evaluate on your labelled cases in PATH too, a path as for `acem3 judge`; the labels may be
    /// final scores, aspects and criteria
    #[arg(long, value_name = "PATH", env = "ACEM3_CASES")]
    pub cases: Option<PathBuf>,
    /// Seed the phantoms and the sampled wrong answers with SEED
    #[arg(long, default_value_t = 2027, env = "ACEM3_SEED")]
    pub seed: u64,
    /// Evaluate on the public data sets in DIR too [default: phantoms only]
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Use only the first N pairs of each data set and of --cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT", value_parser = parse_at_least_one::<usize>)]
    pub limit: Option<usize>,
    /// Skip the blank and mismatched images: judge each pair with its own image only
    #[arg(long, env = "ACEM3_OWN_IMAGES", value_parser = parse_switch)]
    pub own_images: bool,
    /// The samples of analyses.
    #[command(flatten)]
    pub samples: SamplesArgs,
    /// Where the judge looks up medical knowledge.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// The device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// Show progress on stderr in this mode
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        default_value_t = ProgressMode::Auto,
        env = "ACEM3_PROGRESS"
    )]
    pub progress: ProgressMode,
}

/// Arguments of `acem3 train ablate`.
#[derive(Args, Clone, Debug)]
pub struct TrainAblateArgs {
    /// Training configuration (TOML); at least one of its stages must train on preferences, or with
    /// --study automedeval on a file of evaluations
    pub config: PathBuf,
    /// Compare the variants of this study
    #[arg(long, value_enum, default_value = "ablation", env = "ACEM3_STUDY")]
    pub study: AblationStudy,
    /// Train on the evaluations of the last round of a finished `acem3 train introspect` in DIR, and
    /// compare with those of the first round (--study automedeval)
    #[arg(long, value_name = "DIR", env = "ACEM3_INTROSPECTION")]
    pub introspection: Option<PathBuf>,
    /// Write the training runs and the table to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Train each variant with N seeds, starting with the seed of the configuration
    #[arg(long, value_name = "N", default_value_t = 3, env = "ACEM3_SEEDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// Evaluate on N phantom cases [default: 200, or 0 with --cases]
    #[arg(long, value_name = "N", env = "ACEM3_PHANTOMS")]
    pub phantoms: Option<u64>,
    /// Evaluate on your labelled cases in PATH too, a path as for `acem3 judge`; the labels may be
    /// final scores, aspects and criteria
    #[arg(long, value_name = "PATH", env = "ACEM3_CASES")]
    pub cases: Option<PathBuf>,
    /// Seed the evaluation cases with SEED; must differ from the seeds of the training data
    #[arg(long, default_value_t = 2027, env = "ACEM3_SEED")]
    pub seed: u64,
    /// Train and evaluate on the public data sets in DIR too [default: phantoms only]
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Evaluate on N questions of each data set
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT")]
    pub limit: Option<usize>,
    /// Where the trained panels look up medical knowledge.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// Compute on this device: auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// The use of the hub, for a configuration that starts from a checkpoint there.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the table in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}
