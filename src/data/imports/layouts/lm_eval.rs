//! `samples_TASK_DATE.jsonl` of lm-evaluation-harness (`lm_eval/loggers/evaluation_tracker.py`).

use serde_json::Value;

use super::row_context::RowContext;
use crate::data::cases::case::case_id::parse_id;
use crate::data::imports::image_value::image_of;
use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow, WITHOUT_IMAGE};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Fields of a document that hold the question.
const QUESTIONS: [&str; 6] = ["question", "query", "problem", "input", "prompt", "text"];
/// Fields of a document that hold the image.
const IMAGES: [&str; 5] = ["image", "images", "image_path", "img", "image_1"];

/// Returns the task in the name of a file.
pub(super) fn task_of(stem: &str) -> Option<String> {
    let rest = stem.strip_prefix("samples_")?;
    let task = match rest.rsplit_once('_') {
        Some((task, date)) if date.starts_with(|c: char| c.is_ascii_digit()) => task,
        _ => rest,
    };
    Some(task.to_owned())
}

/// Reads a row. A document with several answer filters has one row for each; only the rows of the
/// first filter are read.
pub(super) fn read_row(
    row: &TableRow,
    context: &mut RowContext,
) -> Result<Option<ImportedRow>, String> {
    if let Some(filter) = row.field("filter").and_then(Value::as_str)
        && context.filter.get_or_insert_with(|| filter.to_owned()) != filter
    {
        return Ok(None);
    }
    let id = row.field("doc_id").and_then(parse_id).ok_or("field `doc_id` is missing")?;
    let doc = row.field("doc").unwrap_or(&Value::Null);
    let arguments = row.field("arguments").unwrap_or(&Value::Null);
    let argument = |call: usize, index: usize| {
        arguments.get(format!("gen_args_{call}"))?.get(format!("arg_{index}"))
    };
    let question = QUESTIONS.iter().find_map(|name| doc.get(name)?.as_str());
    let question = question.or_else(|| argument(0, 0)?.as_str());
    let question = question.ok_or("neither `doc` nor `arguments` has a question")?;
    let responses = row.field("filtered_resps").unwrap_or(&Value::Null);
    let target = row.field("target").and_then(text_of);
    let chosen = most_probable(responses);
    let (answer, reference) = match chosen {
        // The answer to a multiple-choice question is the continuation with the highest likelihood.
        Some(index) => {
            let choice = |index: usize| argument(index, 1).and_then(text_of);
            let right = target.as_deref().and_then(|target| right_choice(target, choice));
            (choice(index), right.or(target))
        }
        None => (first_text(responses), target),
    };
    let id = context.task_id(&id);
    let mut imported = ImportedRow {
        question: Some(question.to_owned()),
        reference: reference.map(|text| text.trim().to_owned()),
        answers: vec![ImportedAnswer {
            model: None,
            text: answer.unwrap_or_default().trim().to_owned(),
        }],
        ..ImportedRow::default()
    };
    if let Some(image) = IMAGES.iter().find_map(|name| doc.get(name)) {
        // The harness writes images in memory as their description.
        if image.as_str().is_some_and(|text| text.starts_with("<PIL.")) {
            imported.note = Some(format!("the image was not written: {WITHOUT_IMAGE}"));
        } else {
            imported.set_image(image_of(image, &id, &context.folders));
        }
    }
    imported.id = Some(id);
    Ok(Some(imported))
}

/// Returns the first text in nested lists.
pub(super) fn first_text(value: &Value) -> Option<String> {
    match value {
        Value::Array(values) => values.first().and_then(first_text),
        other => text_of(other),
    }
}

/// Returns the choice whose index is the target; `None` if there is no such choice, or if the target
/// is the text of a choice, such as a number.
fn right_choice(target: &str, choice: impl Fn(usize) -> Option<String>) -> Option<String> {
    let target = target.trim();
    let is_text = |choice: String| choice.trim().eq_ignore_ascii_case(target);
    if (0..).map_while(&choice).any(is_text) {
        return None;
    }
    choice(target.parse().ok()?)
}

/// Returns the index of the continuation with the highest log-likelihood, if the responses are
/// pairs of a log-likelihood and whether decoding would choose it. The first of equal ones counts,
/// as in `numpy.argmax`.
fn most_probable(responses: &Value) -> Option<usize> {
    let pairs = responses.as_array().filter(|pairs| pairs.len() > 1)?;
    let likelihood = |pair: &Value| {
        let [value, _] = pair.as_array()?.as_slice() else { return None };
        value.as_f64().or_else(|| value.as_str()?.parse().ok())
    };
    let values: Option<Vec<f64>> = pairs.iter().map(likelihood).collect();
    let values = values?;
    // `max_by` returns the last of equal values.
    let best = values.iter().enumerate().rev().max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(fields: Value) -> ImportedRow {
        let Value::Object(fields) = fields else { panic!("no object") };
        let row = TableRow { fields, bytes: Vec::new() };
        let mut context = RowContext { task: Some("t".into()), ..RowContext::default() };
        read_row(&row, &mut context).unwrap().unwrap()
    }

    #[test]
    fn task_is_in_the_file_name() {
        let stem = "samples_medqa_4options_2026-11-24T02-50-34.123456";
        assert_eq!(task_of(stem).as_deref(), Some("medqa_4options"));
        assert_eq!(task_of("samples_x").as_deref(), Some("x"));
    }

    #[test]
    fn first_of_equal_choices_is_the_answer_and_a_number_may_be_a_text() {
        let read_choices = |choices: [&str; 3], target: &str| {
            let choice = |text: &str| json!({"arg_0": "How many?", "arg_1": text});
            let [a, b, c] = choices.map(choice);
            let row = read(json!({
                "doc_id": 3, "doc": {}, "target": target, "filter": "none",
                "arguments": {"gen_args_0": a, "gen_args_1": b, "gen_args_2": c},
                "filtered_resps": [["-0.5", "False"], ["-0.5", "False"], ["-3.0", "False"]]
            }));
            (row.answers[0].text.clone(), row.reference.unwrap())
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(read_choices([" one", " two", " three"], "2"), pair("one", "three"));
        assert_eq!(read_choices([" 1", " 2", " 3"], "2"), pair("1", "2"));
        assert_eq!(read_choices([" one", " two", " three"], "7"), pair("one", "7"));
    }

    #[test]
    fn choice_with_the_highest_likelihood_is_the_answer() {
        let choice = |text: &str| json!({"arg_0": "Which?", "arg_1": text});
        let row = read(json!({
            "doc_id": 3, "doc": {}, "target": "0", "filter": "none",
            "arguments": {"gen_args_0": choice(" lung"), "gen_args_1": choice(" liver")},
            "filtered_resps": [["-2.5", "False"], ["-0.5", "True"]]
        }));
        assert_eq!((row.id.as_deref(), row.question.as_deref()), (Some("t-3"), Some("Which?")));
        assert_eq!(
            (row.answers[0].text.as_str(), row.reference.as_deref()),
            ("liver", Some("lung"))
        );
    }
}
