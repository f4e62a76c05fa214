//! Labels from the cells of a label file.

use std::collections::BTreeMap;

use super::column::LabelColumn;
use super::target::ScoreTarget;
use super::vote::Vote;

/// A score or preference given by one rater.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelEntry {
    /// Line number in the file, from 1.
    pub line: u64,
    /// Id of the case.
    pub case: String,
    /// Rater.
    pub rater: String,
    /// Score target.
    pub target: ScoreTarget,
    /// The score or preference.
    pub value: LabelValue,
}

/// A score of a response, or a preference between two.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelValue {
    /// A score.
    Score {
        /// Model that wrote the response.
        model: String,
        /// Score; higher is better.
        value: f64,
    },
    /// A preference.
    Preference {
        /// The two models; `None` if the row names none. The case must then have a single pair.
        models: Option<[String; 2]>,
        /// Preferred response.
        vote: Vote,
    },
}

/// Rater name used if the file has none.
pub const UNNAMED_RATER: &str = "labels";

/// Converts the cells of a row to labels. Empty cells are missing ratings.
pub(super) fn parse_row(
    line: u64,
    cells: &[(LabelColumn, &str, String)],
) -> Result<Vec<LabelEntry>, String> {
    let row = LabelRow::new(line, cells)?;
    let mut entries = Vec::new();
    let mut pair_scores = BTreeMap::new();
    for (column, name, text) in cells.iter().filter(|(_, _, text)| !is_missing(text)) {
        match column {
            LabelColumn::Value => entries.push(row.parse_cell(&row.rater, row.target, name, text)?),
            LabelColumn::TargetRating(target) => {
                entries.push(row.parse_cell(&row.rater, *target, name, text)?);
            }
            LabelColumn::RaterRating(rater) => {
                entries.push(row.parse_cell(rater, row.target, name, text)?);
            }
            LabelColumn::PairScore(i) => {
                pair_scores.insert(*i, parse_score(name, text)?);
            }
            _ => {}
        }
    }
    for (i, value) in pair_scores {
        let Some(models) = &row.models else {
            return Err("pair scores without the columns model_a and model_b\n\
                 hint: add both models to every row"
                .to_owned());
        };
        let model = models[i].clone();
        let score = LabelValue::Score { model, value };
        entries.push(row.new_entry(&row.rater, row.target, score));
    }
    Ok(entries)
}

impl LabelEntry {
    /// Maps a score from its scale to 0–5. Preferences stay unchanged.
    pub(super) fn rescale(&mut self, [low, high]: [f64; 2]) -> Result<(), String> {
        if let LabelValue::Score { value, .. } = &mut self.value {
            if !(low..=high).contains(value) {
                return Err(format!("score {value} is outside --scale {low},{high}"));
            }
            *value = (*value - low) / (high - low) * 5.0;
        }
        Ok(())
    }
}

/// Case, rater, target and models of a row.
struct LabelRow {
    line: u64,
    case: String,
    rater: String,
    target: ScoreTarget,
    model: Option<String>,
    models: Option<[String; 2]>,
}

impl LabelRow {
    fn new(line: u64, cells: &[(LabelColumn, &str, String)]) -> Result<Self, String> {
        let cell = |wanted: &LabelColumn| {
            let mut cells = cells.iter().filter(|(column, _, _)| column == wanted);
            let text = cells.next().map(|(_, _, text)| text.trim().to_owned());
            text.filter(|text| !text.is_empty())
        };
        let case = cell(&LabelColumn::Case).ok_or("the case id is missing")?;
        let target = match cell(&LabelColumn::Target) {
            Some(name) => ScoreTarget::parse_name(&name).ok_or_else(|| unknown_target(&name))?,
            None => ScoreTarget::Final,
        };
        let models = match (cell(&LabelColumn::PairModel(0)), cell(&LabelColumn::PairModel(1))) {
            (Some(a), Some(b)) if a == b => {
                return Err(format!("both models are `{a}`, expected two different models"));
            }
            (Some(a), Some(b)) => Some([a, b]),
            (None, None) => None,
            _ => return Err("one of the two models is missing".to_owned()),
        };
        Ok(Self {
            line,
            case,
            rater: cell(&LabelColumn::Rater).unwrap_or_else(|| UNNAMED_RATER.to_owned()),
            target,
            model: cell(&LabelColumn::Model),
            models,
        })
    }

    /// Parses a cell: a score if the row has a `model`, otherwise a preference.
    fn parse_cell(
        &self,
        rater: &str,
        target: ScoreTarget,
        name: &str,
        text: &str,
    ) -> Result<LabelEntry, String> {
        let value = match &self.model {
            Some(model) => {
                LabelValue::Score { model: model.clone(), value: parse_score(name, text)? }
            }
            None if LabelColumn::is_score_name(name) && parse_score(name, text).is_ok() => {
                return Err(format!(
                    "column `{name}` contains a score, and the row has no `model`\n\
                     hint: give every row a `model`; or name the column `preference` if 1 and 2 are the \
                     preferred response, and 0 is a tie"
                ));
            }
            None => LabelValue::Preference { models: self.models.clone(), vote: Vote::parse(text) },
        };
        Ok(self.new_entry(rater, target, value))
    }

    fn new_entry(&self, rater: &str, target: ScoreTarget, value: LabelValue) -> LabelEntry {
        LabelEntry {
            line: self.line,
            case: self.case.clone(),
            rater: rater.to_owned(),
            target,
            value,
        }
    }
}

/// Returns the error message for an unknown score target.
pub(super) fn unknown_target(name: &str) -> String {
    let all: Vec<&str> = ScoreTarget::all().map(ScoreTarget::key).collect();
    format!("unknown criterion `{name}`\nhint: expected one of {}", all.join(", "))
}

/// Returns true if a cell contains no rating.
fn is_missing(text: &str) -> bool {
    matches!(text.trim().to_lowercase().as_str(), "" | "na" | "n/a" | "nan" | "null" | "none" | "-")
}

/// Parses a finite number with a decimal point or decimal comma.
fn parse_score(name: &str, text: &str) -> Result<f64, String> {
    let value = text.trim().replace(',', ".").parse::<f64>();
    match value {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!(
            "column `{name}`: expected a score, found `{}`\n\
             hint: rows with a `model` contain scores, or 1 for a correct response and 0 for a wrong one; for \
             preferences use the columns `model_a` and `model_b`",
            text.trim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &[&str], cells: &[&str]) -> Result<Vec<LabelEntry>, String> {
        let cells: Vec<_> = header
            .iter()
            .zip(cells)
            .map(|(name, text)| (LabelColumn::from_header(name, &[]), *name, (*text).to_owned()))
            .collect();
        parse_row(3, &cells)
    }

    fn scores(header: &[&str], cells: &[&str]) -> Vec<(String, String, &'static str, f64)> {
        let score = |entry: LabelEntry| match entry.value {
            LabelValue::Score { model, value } => (model, entry.rater, entry.target.key(), value),
            LabelValue::Preference { .. } => panic!("expected a score"),
        };
        read(header, cells).unwrap().into_iter().map(score).collect()
    }

    #[test]
    fn row_with_one_rating_is_read() {
        let found = scores(
            &["case", "model", "rater", "criterion", "score"],
            &["c1", "m", "dr-1", "Factual Accuracy", "4,5"],
        );
        assert_eq!(found, [("m".into(), "dr-1".into(), "factual_accuracy", 4.5)]);
    }

    #[test]
    fn columns_per_criterion_or_rater_are_read() {
        let found = scores(&["id", "system", "final", "EXP", "note"], &["1", "m", "3", "", "x"]);
        assert_eq!(found, [("m".into(), UNNAMED_RATER.into(), "final", 3.0)]);
        let found = scores(&["id", "model", "rater_1", "rater_2"], &["1", "m", "3", "5"]);
        let raters: Vec<_> = found.iter().map(|f| (f.1.as_str(), f.3)).collect();
        assert_eq!(raters, [("rater_1", 3.0), ("rater_2", 5.0)]);
    }

    #[test]
    fn preferences_and_pair_scores_are_read() {
        let found =
            read(&["idx", "id", "annotator1", "annotator2"], &["9", "1", "2", "0"]).unwrap();
        let votes: Vec<_> = found.into_iter().map(|entry| entry.value).collect();
        let vote =
            |text: &str| LabelValue::Preference { models: None, vote: Vote::Text(text.into()) };
        assert_eq!(votes, [vote("2"), vote("0")]);
        let header = ["case", "model_a", "model_b", "score_a", "score_b"];
        let found = scores(&header, &["1", "x", "y", "2", "4"]);
        assert_eq!((found[0].0.as_str(), found[1].3), ("x", 4.0));
        let found = read(&["case", "model_a", "model_b", "winner"], &["1", "x", "y", "y"]).unwrap();
        assert_eq!(
            found[0].value,
            LabelValue::Preference {
                models: Some(["x".into(), "y".into()]),
                vote: Vote::Text("y".into())
            }
        );
    }

    #[test]
    fn invalid_rows_are_rejected_with_reason() {
        let error = |header: &[&str], cells: &[&str]| read(header, cells).unwrap_err();
        assert!(error(&["case", "model", "score"], &["1", "m", "good"]).contains("`good`"));
        assert!(error(&["case", "model", "score"], &["", "m", "1"]).contains("the case id"));
        let unknown = error(&["case", "criterion", "score"], &["1", "beauty", "1"]);
        assert!(unknown.contains("beauty") && unknown.contains("tone_and_empathy"));
        // A score of 1 or 2 is no preference.
        let score = error(&["id", "score"], &["1", "2"]);
        assert!(score.contains("the row has no `model`"), "{score}");
        let pair = error(&["case", "model_a", "score_a"], &["1", "x", "2"]);
        assert!(pair.contains("one of the two models"), "{pair}");
    }
}
