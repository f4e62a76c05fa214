//! What may be typed behind `acem3 agree`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::TableFormat;
use crate::data::labels::ScoreTarget;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 agree verdicts
      The records' own labels (`labels` of their cases).
  acem3 agree verdicts --labels ratings.csv
      A judge beside people, and people beside each other.
  acem3 agree verdicts --labels ratings.csv --against other-verdicts
      Two judges on the same cases: is one better, or could so few cases not tell?
  acem3 agree verdicts --labels ratings.csv --on medical_knowledge --by patient --format csv
      One aspect, a subgroup for every value of `meta.patient`, for a spreadsheet.

Label files are tables (CSV; , ; or tab between columns) or objects (JSONL) with the same names. Each row
names its case, by the id that the records have, and is one of:

  scores        case,model,rater,criterion,score      one rating a row
                case,model,final,expression,FA        a column for each criterion, aspect or `final`
                case,model,rater_1,rater_2            a column for each rater (or --raters COL,COL)
                case,model_a,model_b,score_a,score_b  both responses of a pair
  preferences   case,model_a,model_b,rater,preference >, = or <; a, b or tie; 1, 2 or 0; left, right or both
                                                      bad; a model's name
                case,annotator1,annotator2            where the case has one pair: its order in the records

  case,model,rater,score                  {\"case\": \"c1\", \"model\": \"m1\", \"rater\": \"dr-a\", \"score\": 4}
  c1,m1,dr-a,4                            {\"id\": \"c1\", \"models\": [\"m1\", \"m2\"], \"rater\": \"dr-a\",
  c1,m2,dr-a,2                             \"labels\": {\"final\": [4, 2], \"aspects\": {\"expression\": [5, 4]}}}

`rater` and `criterion` may be left out (one rater, the response as a whole). Criteria are named as in records,
as in the papers, or by their short forms (FA, MKC, CLAR, ...). An empty cell or NA is a rating not given.
Scores are 0 to 5, or of any scale with --scale. What several raters say together is the mean of their
scores, or the most frequent preference, a tie where two are as frequent.";

/// `acem3 agree`.
#[derive(Args, Clone, Debug)]
pub struct AgreeArgs {
    /// The folder that `judge --out` wrote, or its records.jsonl
    pub records: PathBuf,
    /// What people said: a CSV or JSONL file (forms below); without it, the labels in the records
    #[command(flatten)]
    pub labels: LabelArgs,
    /// What is compared: final, an aspect or a criterion; the first is told in full (repeatable)
    /// [default: all that is labelled]
    #[arg(long, value_name = "NAME", env = "ACEM3_ON", value_parser = target)]
    pub on: Vec<ScoreTarget>,
    /// A field of `meta` that makes subgroups, beside data set, question type, modality, organ,
    /// language, scenario and answer length (repeatable)
    #[arg(long, value_name = "FIELD", env = "ACEM3_BY")]
    pub by: Vec<String>,
    /// Another judge's records on the same cases
    #[arg(long, value_name = "RECORDS", env = "ACEM3_AGAINST")]
    pub against: Option<PathBuf>,
    /// Take expected scores (the means under the judge's own probabilities), not those it chose
    #[arg(long, env = "ACEM3_EXPECTED", value_parser = FalseyValueParser::new())]
    pub expected: bool,
    /// How intervals are drawn.
    #[command(flatten)]
    pub sampling: BootstrapArgs,
    /// Round the judge's scores to whole points, as people give them, before they are compared
    #[arg(long, env = "ACEM3_ROUND", value_parser = FalseyValueParser::new())]
    pub round: bool,
    /// The form of the tables on stdout
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
}

/// Where labels come from.
#[derive(Args, Clone, Debug)]
pub struct LabelArgs {
    /// What people said: a CSV or JSONL file; without it, the labels in the records
    #[arg(long, value_name = "FILE", env = "ACEM3_LABELS")]
    pub labels: Option<PathBuf>,
    /// Columns of the label file that hold one rater's ratings each
    #[arg(
        long,
        value_name = "COL,COL",
        value_delimiter = ',',
        env = "ACEM3_RATERS"
    )]
    pub raters: Vec<String>,
    /// The least and greatest score of the label file's scale, which is stretched to 0 to 5
    #[arg(long, value_name = "MIN,MAX", env = "ACEM3_SCALE")]
    pub scale: Option<LabelScale>,
}

/// How intervals are drawn.
#[derive(Args, Clone, Debug)]
pub struct BootstrapArgs {
    /// A field of `meta` whose values are drawn as a whole, such as the patient [default: the image]
    #[arg(long, value_name = "FIELD", env = "ACEM3_CLUSTER")]
    pub cluster: Option<String>,
    /// Draws of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 2000, env = "ACEM3_DRAWS")]
    #[arg(value_parser = clap::value_parser!(u32).range(20..=1_000_000))]
    pub draws: u32,
    /// The seed of the bootstrap: equal seeds give equal intervals
    #[arg(long, value_name = "S", default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
}

/// A scale's two ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelScale(pub [f64; 2]);

impl FromStr for LabelScale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || "expected two numbers, the lesser first, as in 1,10".to_owned();
        let (low, high) = text.split_once(',').ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
        let (low, high) = (number(low)?, number(high)?);
        if low < high && (high - low).is_finite() {
            Ok(Self([low, high]))
        } else {
            Err(wrong())
        }
    }
}

pub(super) fn target(name: &str) -> Result<ScoreTarget, String> {
    ScoreTarget::named(name).ok_or_else(|| {
        let all: Vec<&str> = ScoreTarget::all().map(ScoreTarget::key).collect();
        format!("expected one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_read_strictly() {
        assert_eq!("1, 10".parse(), Ok(LabelScale([1.0, 10.0])));
        for wrong in ["5", "5,1", "a,b", "1,inf", "nan,2"] {
            assert!(wrong.parse::<LabelScale>().is_err(), "{wrong}");
        }
        assert!(target("FA").is_ok() && target("beauty").is_err());
    }
}
