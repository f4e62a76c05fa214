//! What may be typed behind `acem3 train introspect`.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceArgs, OutputFormat, SourceArgs};
use crate::checkpoints::hub::HubFlags;

/// What is judged, asked and trained.
#[derive(Args, Clone, Debug)]
pub struct IntrospectArgs {
    /// The configuration; one of its stages learns from a file of evaluations, which is mended (TOML)
    pub config: PathBuf,
    /// Cases that are learned from, with known final scores as their labels.
    #[command(flatten)]
    pub cases: SourceArgs,
    /// Who is asked about what was judged wrong: a second panel (as for --panel), the records of verdicts
    /// (`records.jsonl`, or the folder of a run), or the address of a model behind an interface like `OpenAI`'s
    /// (`http://localhost:8000/v1`); images, questions and answers of these cases are sent there
    #[arg(long, value_name = "WHO", env = "ACEM3_SUGGEST")]
    pub suggest: String,
    /// The model behind that address; its key, if it wants one, is read from `OPENAI_API_KEY`
    #[arg(long, value_name = "NAME", env = "ACEM3_MODEL")]
    pub model: Option<String>,
    /// How often it is asked about one pair; from the second time on it is told what people said
    #[arg(long, value_name = "N", default_value_t = 3, env = "ACEM3_ATTEMPTS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10))]
    pub attempts: u32,
    /// How often the data are mended
    #[arg(long, value_name = "T", default_value_t = 2, env = "ACEM3_ROUNDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20))]
    pub rounds: u32,
    /// Cases with known final scores that are never learned from; each round's panel judges them too
    #[arg(long, value_name = "PATH", env = "ACEM3_HELD_OUT")]
    pub held_out: Option<PathBuf>,
    /// Where rounds go, and their table
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// The folder of public data sets, where stages draw from them; phantoms alone without it
    #[arg(long, value_name = "DIR", env = "ACEM3_DATA")]
    pub data: Option<PathBuf>,
    /// How many pairs are judged at once
    #[arg(long, value_name = "N", default_value_t = 8, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
    /// Where panels are trained and judge.
    #[command(flatten)]
    pub place: DeviceArgs,
    /// The form of the table on stdout
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// How the hub is used.
    #[command(flatten)]
    pub hub: HubFlags,
}
