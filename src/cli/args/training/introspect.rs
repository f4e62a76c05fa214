//! Arguments of `acem3 train introspect`.

use std::path::PathBuf;

use clap::Args;

use crate::checkpoints::hub::HubArgs;
use crate::cli::args::shared::{DeviceArgs, KnowledgeArgs, OutputFormat, SourceArgs};
use crate::support::terminal::switch::parse_switch;

/// Arguments of `acem3 train introspect`.
#[derive(Args, Clone, Debug)]
pub struct IntrospectArgs {
    /// Training configuration (TOML); one of its stages must train on a file of evaluations
    pub config: PathBuf,
    /// The training cases; their labels must have final scores.
    #[command(flatten)]
    pub cases: SourceArgs,
    /// Adviser, reviewer and people.
    #[command(flatten)]
    pub discussion: DiscussionArgs,
    /// Where the adviser looks up what it asks.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// Improve the training data N times
    #[arg(long, value_name = "N", default_value_t = 2, env = "ACEM3_ROUNDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20))]
    pub rounds: u32,
    /// Repeat the whole training from its start in each round [default: train on from the panel of
    /// the round before, as AutoMedEval does, with the stages that have evaluations]
    #[arg(long, env = "ACEM3_RESTART", value_parser = parse_switch)]
    pub restart: bool,
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
    /// Judge at most N pairs at the same time; affects speed and memory, not results
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

/// Arguments of the discussion of misjudged pairs.
#[derive(Args, Clone, Debug)]
pub struct DiscussionArgs {
    /// Get better evaluations of misjudged cases from SOURCE: a second panel (as for
    /// `judge --panel`), the records of a run, or the base URL of an OpenAI-compatible server
    /// (`https://host/v1`, without a key). A server receives the images, questions and answers of
    /// these cases. With --knowledge, a panel or server looks up what it asks
    #[arg(long, value_name = "SOURCE", env = "ACEM3_ADVISER", hide_env_values = true)]
    pub adviser: String,
    /// Request evaluations from this model of the server; the API key is read from `OPENAI_API_KEY`
    #[arg(long, value_name = "NAME", env = "ACEM3_MODEL")]
    pub model: Option<String>,
    /// Let SOURCE (as for --adviser) judge the suggestions. A server reads them and says what has to
    /// change; a panel or records accept a suggestion if their own verdict prefers the same response
    #[arg(long, value_name = "SOURCE", env = "ACEM3_REVIEWER", hide_env_values = true)]
    pub reviewer: Option<String>,
    /// Request reviews from this model of the reviewer's server
    #[arg(long, value_name = "NAME", env = "ACEM3_REVIEWER_MODEL")]
    pub reviewer_model: Option<String>,
    /// Read the API key of the reviewer's server from variable NAME [default: `OPENAI_API_KEY` if
    /// adviser and reviewer have the same URL or the adviser is no server, else no key]
    #[arg(long, value_name = "NAME", env = "ACEM3_REVIEWER_KEY_ENV")]
    pub reviewer_key_env: Option<String>,
    /// Send images outside of the folder of the cases to the servers too
    #[arg(long, env = "ACEM3_ALLOW_OUTSIDE", value_parser = parse_switch)]
    pub allow_outside: bool,
    /// Discuss each pair with a server in up to N rounds: a rejected suggestion is requested again,
    /// with the labels if it contradicts them, and with the reviewer's reason
    #[arg(long, value_name = "N", default_value_t = 3, env = "ACEM3_ATTEMPTS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10))]
    pub attempts: u32,
    /// Read decisions of people from FILE: lines of `unresolved.jsonl` with `decision` filled in.
    /// They take precedence over the adviser
    #[arg(long, value_name = "FILE", env = "ACEM3_DECISIONS")]
    pub decisions: Option<PathBuf>,
    /// Stop before a training with exit code 1 if people have to decide about a pair
    #[arg(long, env = "ACEM3_WAIT_FOR_PEOPLE", value_parser = parse_switch)]
    pub wait_for_people: bool,
}
