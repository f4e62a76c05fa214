//! What may be typed behind `acem3 data`.

use std::path::PathBuf;

use acem3_experts::prompt::Layout;
use clap::{Args, Subcommand, ValueEnum};

use super::{OutputFormat, SourceArgs};
use crate::training::Negative;

/// `acem3 data`.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// What to do with data.
    #[command(subcommand)]
    pub command: DataCommand,
}

/// The commands of `acem3 data`.
#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    /// Draw images with known lesions, ask about them, and answer well and badly on purpose
    ///
    /// The right verdict on every criterion is known by rule and written as labels, so that any
    /// judge can be tested with them: does it look at the image?
    Phantoms(PhantomArgs),
    /// Write right evaluations, of phantoms or your own, each beside a worse one, as TRL's DPO trainer reads them
    Preferences(PreferenceArgs),
    /// Rate evaluations to be learned from by some that people have rated, for a curriculum
    ///
    /// A logistic model of what evaluations are like and of their words tells whether each is of the better half.
    /// It says how often that is right of evaluations it has not seen.
    Quality(QualityArgs),
    /// Read cases without judging them, decode their images, and list every problem
    ///
    /// Exits with 1 when there is one.
    Check(CheckArgs),
    /// Print the JSON Schema of cases or records
    Schema(SchemaArgs),
}

/// `acem3 data phantoms`.
#[derive(Args, Clone, Debug)]
pub struct PhantomArgs {
    /// The folder to write `cases.jsonl` and `images/` into
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// How many cases
    #[arg(long, default_value_t = 12, env = "ACEM3_N")]
    pub n: u64,
    /// The seed: equal seeds give equal files
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
}

/// `acem3 data preferences`.
#[derive(Args, Clone, Debug)]
pub struct PreferenceArgs {
    /// Right evaluations of your own, in place of phantoms': lines of `prompt`, `completion` (or `chosen`), `images` and
    /// `member`; each keeps to the form of its member's evaluations
    #[arg(value_name = "FILE", conflicts_with_all = ["n", "layout"])]
    pub evaluations: Option<PathBuf>,
    /// The folder to write `preferences.jsonl` and `images/` into
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// How many phantoms; each gives a pair for each of the four members
    #[arg(long, default_value_t = 100, env = "ACEM3_N")]
    pub n: u64,
    /// The seed: equal seeds give equal files
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
    /// What makes an evaluation worse; at times two ways are mixed
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values_t = Negative::ALL,
        env = "ACEM3_NEGATIVES"
    )]
    pub negatives: Vec<Negative>,
    /// The layout of the prompts
    #[arg(long, value_enum, default_value_t = PromptLayoutArg::Paper, env = "ACEM3_LAYOUT")]
    pub layout: PromptLayoutArg,
    /// Begin the better evaluation with `[Good]` and the worse one with `[Bad]` (RTDPO)
    #[arg(long, env = "ACEM3_REWARD_TOKENS")]
    pub reward_tokens: bool,
}

/// `acem3 data quality`.
#[derive(Args, Clone, Debug)]
pub struct QualityArgs {
    /// Lines of `prompt`, `completion` (or `chosen`) and, where somebody rated them, `quality`
    #[arg(value_name = "FILE")]
    pub path: PathBuf,
    /// The same lines, each with the chance to be of the better half as `quality`; ratings are kept as `rated`
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// The seed of the parts that rate each other, and of the interval
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
    /// The form of what is printed
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

/// `acem3 data schema`.
#[derive(Args, Clone, Copy, Debug)]
pub struct SchemaArgs {
    /// File format to describe
    #[arg(value_enum)]
    pub of: SchemaOf,
}

/// A file format with a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// One line of `cases.jsonl`, which `acem3 judge` reads
    Cases,
    /// One line of `records.jsonl`, which `acem3 judge` writes
    Records,
}

/// The layout of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PromptLayoutArg {
    /// Criteria first, as ACE-M³ was trained
    Paper,
    /// Image, question and responses first, as the embedded panel was
    CaseFirst,
}

impl From<PromptLayoutArg> for Layout {
    fn from(layout: PromptLayoutArg) -> Self {
        match layout {
            PromptLayoutArg::Paper => Self::Paper,
            PromptLayoutArg::CaseFirst => Self::CaseFirst,
        }
    }
}

/// `acem3 data check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// What to read.
    #[command(flatten)]
    pub source: SourceArgs,
    /// How many responses a case needs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        env = "ACEM3_MIN_RESPONSES"
    )]
    pub min_responses: usize,
    /// The form of the list on stdout
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}
