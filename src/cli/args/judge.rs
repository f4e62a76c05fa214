//! Arguments of `acem3 judge`.

use std::path::PathBuf;

use clap::Args;

use super::shared::value_parsers::{parse_at_least_one, parse_percent};
use super::shared::{FormArgs, JudgePanelArgs, OutputFormat, ShardArg, SourceArgs};
use crate::data::cases::SourceOptions;
use crate::support::terminal::switch::parse_switch;
use crate::support::terminal::verbosity::ProgressMode;

const EXAMPLES: &str = "\
Examples:
  acem3 judge cases --out verdicts
      Judge a folder with `cases.jsonl` (or `questions.csv`), `images/` and
      `answers/MODEL.jsonl`
  acem3 judge cases.jsonl --out verdicts --panel my-panel --device cuda
      Judge with another panel, on a GPU
  acem3 judge slake/ --answers a.jsonl --answers b.jsonl --out verdicts
      Judge the answers of two models to a public data set
  acem3 judge cases --out verdicts --baseline gpt-x --format json > out.json
      Compare every model with one baseline; write the summary as JSON

  acem3 judge cases --shard 1/2 --out part1
  acem3 judge cases --shard 2/2 --out part2
  acem3 merge part1 part2 --out verdicts
      Judge on two machines; assets/guide/scale.md has scripts for Slurm and
      Kubernetes

Run the same command again to resume. `DIR/records.jsonl` has one JSON line per verdict; \
`DIR/run.json` describes the judge and the input.";

/// Arguments of `acem3 judge`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct JudgeArgs {
    /// The cases to judge.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Write the verdicts to folder DIR; an existing run in DIR is resumed
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// What a verdict is about.
    #[command(flatten)]
    pub form: FormArgs,
    /// Compare each model with MODEL only, instead of judging all pairs
    #[arg(long, value_name = "MODEL", env = "ACEM3_BASELINE")]
    pub baseline: Option<String>,
    /// Judge only the first N cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT", value_parser = parse_at_least_one::<u64>)]
    pub limit: Option<u64>,
    /// Judge part I of N of the cases, in a folder of its own, for example 3/8; `auto` takes both
    /// numbers from a Slurm array, `/N` takes I from a Slurm array or an indexed Kubernetes job;
    /// `acem3 merge` joins the parts
    #[arg(long, value_name = "I/N", env = "ACEM3_SHARD", value_parser = ShardArg::parse)]
    pub shard: Option<ShardArg>,
    /// Exit with code 3 if more than PERCENT of the records are unscored or of the cases unreadable,
    /// and with code 2 if none has a verdict because cases or images cannot be read
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_UNSCORED",
        value_parser = parse_percent,
        default_value = "50"
    )]
    pub max_unscored: f64,
    /// Write the result of --max-unscored to FILE as JUnit XML
    #[arg(long, value_name = "FILE", env = "ACEM3_JUNIT")]
    pub junit: Option<PathBuf>,
    /// Fail if DIR already contains verdicts, instead of resuming
    #[arg(long, env = "ACEM3_NO_RESUME", value_parser = parse_switch)]
    pub no_resume: bool,
    /// Judge three responses or pairs, print what the run would need (requests, tokens, cost, time), and
    /// write nothing
    #[arg(long, env = "ACEM3_DRY_RUN", value_parser = parse_switch)]
    pub dry_run: bool,
    /// Print the summary in this format
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
    /// True if the run is a step of another command, which prints its own result.
    #[arg(skip)]
    pub hides_summary: bool,
    /// The judge. This field is the last one, because clap applies its help heading to all
    /// arguments after it.
    #[command(flatten)]
    pub judge: JudgePanelArgs,
}

impl JudgeArgs {
    /// Returns the options for opening the cases.
    pub fn source_options(&self) -> SourceOptions {
        self.form.source_options(&self.source)
    }
}
