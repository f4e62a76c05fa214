//! Arguments of the commands of `acem3 data` that construct training data.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::{
    FormArgs, JudgePanelArgs, OutputFormat, PromptLayoutArg, RubricDetailArg, SourceArgs,
};
use crate::support::terminal::switch::parse_switch;
use crate::support::terminal::verbosity::ProgressMode;

const EXAMPLES: &str = "\
Examples:
  acem3 data evaluations cases --recipe ace_m3 --panel http://127.0.0.1:8000/v1 \\
    --model NAME --out data
      Let a served model evaluate the responses as in the paper, check its
      verdicts, and write data/evaluations.jsonl
  acem3 data evaluations cases --recipe ace_m3 --panel … --out data --dry-run
      Print the requests, tokens and time that this needs
  acem3 data evaluations verdicts --out data
      Convert the verdicts of a finished run of `acem3 judge`

Run the same command again to resume. The teacher's run is in data/teacher, what \
the check rejected in data/rejected.jsonl.";

/// Arguments of `acem3 data evaluations`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct EvaluationsArgs {
    /// The cases to evaluate, or the folder of a run of `acem3 judge`, whose verdicts are converted.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Write `evaluations.jsonl`, `rejected.jsonl`, `summary.json`, `images/` and the teacher's run to
    /// folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Prompt the teacher by this recipe: `ace_m3`, `hdceval`, `automedeval`, or a TOML file; it sets
    /// --form, --reference, --rubric and --text-only
    #[arg(long, value_name = "RECIPE", env = "ACEM3_RECIPE")]
    #[arg(conflicts_with_all = ["form", "reference", "rubric"])]
    pub recipe: Option<String>,
    /// What a verdict is about.
    #[command(flatten)]
    pub form: FormArgs,
    /// The prompts of the trained members.
    #[command(flatten)]
    pub student: StudentArgs,
    /// The check.
    #[command(flatten)]
    pub check: CheckRuleArgs,
    /// Evaluate only the first N cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Evaluate three responses or pairs, print what the teacher would need (requests, tokens, cost,
    /// time), and write nothing
    #[arg(long, env = "ACEM3_DRY_RUN", value_parser = parse_switch)]
    pub dry_run: bool,
    /// Print the counts in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// Show progress on stderr in this mode
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ProgressMode::Auto)]
    #[arg(env = "ACEM3_PROGRESS")]
    pub progress: ProgressMode,
    /// The teacher. This field is the last one, because clap applies its help heading to all
    /// arguments after it.
    #[command(flatten)]
    pub teacher: JudgePanelArgs,
}

/// Arguments that select the prompts of the trained members.
#[derive(Args, Clone, Debug)]
pub struct StudentArgs {
    /// Write prompts for the panel of this training configuration: its layout, rubric detail and chat
    /// template
    #[arg(long, value_name = "FILE", env = "ACEM3_CONFIG")]
    #[arg(conflicts_with_all = ["layout", "detail", "dialogue"])]
    pub config: Option<PathBuf>,
    /// Write prompts in this layout
    #[arg(long, value_enum, default_value_t = PromptLayoutArg::Paper, env = "ACEM3_LAYOUT")]
    pub layout: PromptLayoutArg,
    /// How much of the rubric the prompts contain
    #[arg(long, value_enum, default_value_t = RubricDetailArg::Full, env = "ACEM3_DETAIL")]
    pub detail: RubricDetailArg,
    /// Put the prompts into this chat template: `vicuna`, `mistral`, `chatml` and others [default: none]
    #[arg(long, value_name = "NAME", env = "ACEM3_DIALOGUE")]
    pub dialogue: Option<String>,
    /// Show the reference in the prompts of the trained members too; `correctness` always does
    #[arg(long, env = "ACEM3_STUDENT_REFERENCE", value_parser = parse_switch)]
    pub student_reference: bool,
}

/// Arguments of the automatic check.
#[derive(Args, Clone, Debug)]
pub struct CheckRuleArgs {
    /// Compare verdicts with these; both reject a verdict that contradicts them
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', env = "ACEM3_CHECK")]
    #[arg(default_values_t = [CheckSource::Labels, CheckSource::Reference])]
    pub check: Vec<CheckSource>,
    /// Also reject pairs whose preferred response changes with the presentation order
    #[arg(long, env = "ACEM3_REJECT_FLIPS", value_parser = parse_switch)]
    pub reject_flips: bool,
    /// Reject a response alone whose final score differs by more than POINTS from its label
    #[arg(long, value_name = "POINTS", default_value_t = 1.0, env = "ACEM3_MAX_DIFFERENCE")]
    pub max_difference: f64,
}

/// What verdicts are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckSource {
    /// The labels of the cases: the final scores have their order
    Labels,
    /// The reference answer: a response that equals it scores no lower than another one
    Reference,
    /// Neither
    None,
}
