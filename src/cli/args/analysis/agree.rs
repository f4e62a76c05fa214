//! Arguments of `acem3 agree`.

use std::path::PathBuf;

use clap::Args;

use crate::analysis::verdicts::ScoreKind;
use crate::cli::args::shared::value_parsers::parse_score_target;
use crate::cli::args::shared::{BootstrapArgs, BoundValue, CompleteArgs, LabelArgs, TableFormat};
use crate::data::labels::ScoreTarget;
use crate::support::terminal::switch::parse_switch;

const EXAMPLES: &str = "\
Examples:
  acem3 agree verdicts
      Compare verdicts with the labels in the records
  acem3 agree verdicts --labels ratings.csv
      Compare verdicts with a label file; with several raters, show the human ceiling
  acem3 agree verdicts --labels ratings.csv --against other-verdicts
      Compare two judges on the same cases, with significance tests
  acem3 agree verdicts --labels ratings.csv --group-by patient --format csv
      Compare subgroups by the value of `meta.patient`; print CSV
  acem3 agree verdicts --min accuracy=60 --min kappa=0.3 --junit agree.xml
      Fail below 60 % accuracy or a kappa of 0.3; write JUnit XML for CI
  acem3 agree graded --labels grades.csv --min agreement=80 --min sensitivity=75
      The same for verdicts of the form correctness, and labels of 1 and 0

Label files are CSV (columns separated by comma, semicolon or tab), JSONL (one object per \
line with the same fields, or with the `labels` of a case) or a JSON export of Label Studio. Each row names a case by its id in the \
records.

Columns of score files:
  case,model,rater,criterion,score      one rating per row
  case,model,final,expression,FA        one column per score target
  case,model,rater_1,rater_2            one column per rater
  case,model_a,model_b,score_a,score_b  both responses of a pair

Columns of preference files:
  case,model_a,model_b,rater,preference  one preference per row
  case,annotator1,annotator2             one column per rater, for cases with
                                         one pair; a is its first response in
                                         the records

Example of a CSV file:
  case,model,rater,score
  c1,m1,dr-a,4
  c1,m2,dr-a,2

Examples of JSONL lines:
  {\"case\": \"c1\", \"model\": \"m1\", \"rater\": \"dr-a\", \"score\": 4}
  {\"id\": \"c1\", \"models\": [\"m1\", \"m2\"], \"labels\": {\"final\": [4, 2]}}

In a JSON export of Label Studio, each task names its case and models in `meta` or `data`. Controls are named \
after a score target and the response, such as factual_accuracy-a, or preference. `acem3 annotate --results` writes such a labeling \
configuration.

Score targets, for --target and label files, with abbreviations of the papers ACE-M³ and HDCEval:
  final                          overall
  expression                     EXP
    clarity_of_response          CR, CLAR
    language_appropriateness     LA, LANG
    tone_and_empathy             TE
    expression_integrity         EI, INTE
  medical_knowledge              MKC, COR
    factual_accuracy             FA, ACC
    up_to_date_information       UI, INFO
    handling_uncertainty         HU, UNC
  patient_relevance              PQR, REL
    context_awareness            CA, CONT
    relevance_to_condition       RPC, COND
    addressing_multiple_concerns AMC, CONC

`rater` and `criterion` are optional; the default is one rater and the final score. `criterion` is \
a score target or an abbreviation. A preference is >, = or <; a, b or tie; 1, 2 or 0; left, right \
or both bad; or the name of a model. An empty cell or NA is a missing rating. Scores range from 0 \
to 5; use --scale for other scales. The consensus of several raters is the mean score, or the \
majority preference (a tie if two are equally frequent).";

/// Arguments of `acem3 agree`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct AgreeArgs {
    /// Folder that `judge --out` wrote, or its records.jsonl; several, such as all shards, count as one
    /// run and must be of one judge
    #[arg(required = true, value_name = "RECORDS")]
    pub records: Vec<PathBuf>,
    /// Compare scores of this target: final, an aspect or a criterion, see below (repeatable; only
    /// the first gets the full table and subgroups) [default: all labelled targets]
    #[arg(long, value_name = "NAME", env = "ACEM3_TARGET", value_parser = parse_score_target)]
    pub target: Vec<ScoreTarget>,
    /// Show subgroups by `meta.FIELD` too, besides data set, question type, modality, organ,
    /// language, scenario and response length (repeatable)
    #[arg(long, value_name = "FIELD", env = "ACEM3_GROUP_BY")]
    pub group_by: Vec<String>,
    /// Compare with the records of another judge on the same cases
    #[arg(long, value_name = "RECORDS", env = "ACEM3_AGAINST")]
    pub against: Option<PathBuf>,
    /// Compare these scores of the judge
    #[arg(long, value_enum, default_value_t = ScoreKind::Chosen, env = "ACEM3_SCORES")]
    pub scores: ScoreKind,
    /// Round the judge's scores to whole points before the comparison
    #[arg(long, env = "ACEM3_ROUND", value_parser = parse_switch)]
    pub round: bool,
    /// Fail if a statistic is below VALUE on the first target, for example accuracy=60 (percent) or
    /// kappa=0.4; the names are those of the JSON output (repeatable; exit code 1)
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "ACEM3_MIN",
        value_delimiter = ',',
        value_parser = BoundValue::parse
    )]
    pub min: Vec<BoundValue>,
    /// Fail if a statistic is above VALUE on the first target, for example bias=0.5 (repeatable;
    /// exit code 1)
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "ACEM3_MAX",
        value_delimiter = ',',
        value_parser = BoundValue::parse
    )]
    pub max: Vec<BoundValue>,
    /// Write the results of the thresholds to FILE as JUnit XML, one test case each
    #[arg(long, value_name = "FILE", env = "ACEM3_JUNIT")]
    pub junit: Option<PathBuf>,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
    /// The state of the run.
    #[command(flatten)]
    pub run: CompleteArgs,
    /// The labels.
    #[command(flatten)]
    pub labels: LabelArgs,
    /// The bootstrap.
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
}
