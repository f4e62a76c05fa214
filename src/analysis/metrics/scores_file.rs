//! Scores file: one JSON line per answer.

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Map, Value};

use super::outcome::{AnswerScores, MetricOutcome};
use crate::analysis::metrics::answers::answer::{AnswerSet, MetricAnswer, MissingAnswer};
use crate::support::files::file_form::{FileForm, has_json_fields};

/// The form of a scores file: its first line is an answer, with or without scores.
pub const SCORES_FORM: FileForm = FileForm {
    name: "a scores file of acem3",
    recognise: |file| {
        let is_scored = has_json_fields(file, &["case", "line", "model", "image", "closed"])?;
        Ok(is_scored || has_json_fields(file, &["case", "line", "model", "missing"])?)
    },
};

/// Line of an answer with its scores.
#[derive(Serialize)]
struct ScoredLine<'a> {
    case: &'a str,
    line: u64,
    model: &'a str,
    image: &'a str,
    closed: Option<bool>,
    answer: &'a str,
    reference: Option<&'a str>,
    scores: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    uncounted: Map<String, Value>,
}

/// Line of a missing answer.
#[derive(Serialize)]
struct MissingLine<'a> {
    case: Option<&'a str>,
    line: u64,
    model: &'a str,
    missing: &'a str,
}

/// Returns the lines of all answers, then of the missing answers.
///
/// # Errors
/// A line cannot be serialised.
pub fn to_json_lines(answers: &AnswerSet, scores: &[AnswerScores]) -> Result<String> {
    let mut text = String::new();
    let mut push = |line: serde_json::Result<String>| -> Result<()> {
        text.push_str(&line.context("could not serialise the scores of an answer")?);
        text.push('\n');
        Ok(())
    };
    for (answer, scores) in answers.answers.iter().zip(scores) {
        push(serde_json::to_string(&scored_line(answer, scores)))?;
    }
    for MissingAnswer { case, line, model, message } in &answers.missing {
        push(serde_json::to_string(&MissingLine {
            case: case.as_deref(),
            line: *line,
            model,
            missing: message,
        }))?;
    }
    Ok(text)
}

fn scored_line<'a>(answer: &'a MetricAnswer, scores: &AnswerScores) -> ScoredLine<'a> {
    let (mut values, mut uncounted) = (Map::new(), Map::new());
    for (name, outcome) in scores.iter() {
        match outcome {
            MetricOutcome::Value(value) => {
                values.insert(name.to_owned(), value.into());
            }
            MetricOutcome::Uncounted(reason) => {
                uncounted.insert(name.to_owned(), reason.key().into());
            }
            MetricOutcome::NotApplicable => {}
        }
    }
    ScoredLine {
        case: &answer.case,
        line: answer.line,
        model: &answer.model,
        image: &answer.cluster,
        closed: answer.is_closed,
        answer: &answer.text,
        reference: answer.reference.as_deref(),
        scores: values,
        uncounted,
    }
}
