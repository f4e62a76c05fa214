//! Arguments of `acem3 train introspect`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

use crate::checkpoints::hub::HubArgs;
use crate::cli::args::shared::{DeviceArgs, OutputFormat, SourceArgs};

/// Arguments of `acem3 train introspect`.
#[derive(Args, Clone, Debug)]
pub struct IntrospectArgs {
    /// Training configuration (TOML); one of its stages must train on a file of evaluations
    pub config: PathBuf,
    /// The training cases; their labels must have final scores.
    #[command(flatten)]
    pub cases: SourceArgs,
    /// Get better evaluations of misjudged cases from SOURCE: a second panel (as for
    /// `judge --panel`), the records of a run, or the base URL of an OpenAI-compatible server
    /// (`https://host/v1`, without a key). A server receives the images, questions and answers of
    /// these cases
    #[arg(long, value_name = "SOURCE", env = "ACEM3_ADVISER", hide_env_values = true)]
    pub adviser: String,
    /// Request evaluations from this model of the server; the API key is read from `OPENAI_API_KEY`
    #[arg(long, value_name = "NAME", env = "ACEM3_MODEL")]
    pub model: Option<String>,
    /// Send images outside of the folder of the cases to the server too
    #[arg(long, env = "ACEM3_ALLOW_OUTSIDE", value_parser = FalseyValueParser::new())]
    pub allow_outside: bool,
    /// Make up to N requests per pair; retries include the labels in the prompt
    #[arg(long, value_name = "N", default_value_t = 3, env = "ACEM3_ATTEMPTS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10))]
    pub attempts: u32,
    /// Improve the training data N times
    #[arg(long, value_name = "N", default_value_t = 2, env = "ACEM3_ROUNDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20))]
    pub rounds: u32,
    /// Measure each round on the cases in PATH too, which are not trained on; they need labels of
    /// the final score
    #[arg(long, value_name = "PATH", env = "ACEM3_HELD_OUT")]
    pub held_out: Option<PathBuf>,
    /// Write the rounds and their table to folder DIR; an interrupted run in DIR is resumed
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Train on the public data sets in DIR too [default: phantoms only]
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// Judge N pairs per batch; affects speed and memory, not results
    #[arg(long, value_name = "N", default_value_t = 8, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
    /// The device for training and judging.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the table in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}
