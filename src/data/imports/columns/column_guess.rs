//! Guesses the roles of columns from their names.

use super::column_roles::{AnswerColumn, ColumnRoles};

/// Names of id columns, the most likely first.
const IDS: &[&str] = &[
    "id",
    "case_id",
    "question_id",
    "qid",
    "index",
    "idx",
    "doc_id",
    "sample_id",
    "custom_id",
    "uid",
    "row_id",
];
/// Names of image columns.
const IMAGES: &[&str] = &[
    "image",
    "image_path",
    "img",
    "image_file",
    "img_path",
    "image_name",
    "img_name",
    "imagepath",
    "image_url",
    "images",
    "image_paths",
    "image_bytes",
    "image_base64",
    "img_url",
    "picture",
    "photo",
    "file_name",
    "filename",
];
/// Names of question columns.
const QUESTIONS: &[&str] = &["question", "query", "prompt", "instruction", "input", "problem"];
/// Names of reference columns.
const REFERENCES: &[&str] = &[
    "reference",
    "reference_answer",
    "ground_truth",
    "groundtruth",
    "gt_answer",
    "gold_answer",
    "correct_answer",
    "gt",
    "gold",
    "target",
    "answer",
    "label",
    "expected",
    "ref",
];
/// Names of answer columns of tables with one answer per row.
const ANSWERS: &[&str] = &[
    "prediction",
    "response",
    "model_answer",
    "model_response",
    "model_output",
    "predicted_answer",
    "predict",
    "pred",
    "output",
    "completion",
    "generated_text",
    "generation",
    "generated",
    "model_prediction",
];
/// Names of answer columns of tables with one answer per row, if another column has the reference and a third
/// one the model.
const ANSWERS_BESIDE_MODELS: &[&str] = &["answer", "text"];
/// Names of model columns.
const MODELS: &[&str] = &["model", "model_id", "model_name"];
/// Words around the name of a model in answer columns, such as `response_gpt` and `gpt_answer`.
const ANSWER_WORDS: &[&str] =
    &["answer", "response", "prediction", "pred", "output", "completion", "model"];
/// Parts that show that a column such as `answer_type` contains no answer.
const NOT_MODELS: &[&str] = &[
    "type",
    "id",
    "ids",
    "idx",
    "index",
    "key",
    "letter",
    "options",
    "option",
    "format",
    "name",
    "path",
    "version",
    "len",
    "length",
    "tokens",
    "time",
    "score",
    "correct",
    "reference",
    "gt",
    "gold",
    "raw",
    "lang",
    "language",
    "list",
    "choices",
    "ground_truth",
];

/// Names of columns that describe a question.
const ATTRIBUTES: &[&str] = &[
    "organ",
    "modality",
    "location",
    "body_part",
    "anatomy",
    "category",
    "subcategory",
    "topic",
    "subject",
    "task",
    "split",
    "difficulty",
    "source",
    "dataset",
    "image",
    "context",
    "explanation",
    "rationale",
    "comment",
    "notes",
    "a",
    "b",
    "c",
    "d",
    "e",
];

/// Returns true for the name of a column that describes a question, or names a model, and contains no answer.
pub(crate) fn is_attribute(column: &str) -> bool {
    let name = normalise(column);
    let last = name.rsplit(['_', '.']).next().unwrap_or_default();
    let describes = [ATTRIBUTES, MODELS].iter().any(|names| names.contains(&name.as_str()));
    describes || NOT_MODELS.contains(&last)
}

/// Guesses the roles of columns. Returns all roles that were found; the question or the answers
/// may be missing.
pub(crate) fn guess_roles(columns: &[String]) -> ColumnRoles {
    let names: Vec<String> = columns.iter().map(|name| normalise(name)).collect();
    let find = |list: &[&str]| {
        let position = list.iter().find_map(|role| names.iter().position(|name| name == role))?;
        columns.get(position).cloned()
    };
    let mut roles = ColumnRoles {
        id: find(IDS),
        image: find(IMAGES).or_else(|| image_struct(columns)),
        question: find(QUESTIONS),
        reference: find(REFERENCES),
        model: find(MODELS),
        answers: Vec::new(),
    };
    let beside_model = || {
        let (_, reference) = roles.model.as_ref().zip(roles.reference.as_ref())?;
        let mut found = ANSWERS_BESIDE_MODELS.iter().filter_map(|name| find(&[name]));
        found.find(|name| name != reference)
    };
    let single = find(ANSWERS).or_else(beside_model);
    let known: Vec<String> =
        roles.columns().map(str::to_owned).chain(single.iter().cloned()).collect();
    for (column, name) in columns.iter().zip(&names) {
        if known.contains(column) {
            continue;
        }
        if let Some(model) = model_of_column(column, name) {
            roles.answers.push(AnswerColumn { model: Some(model), column: column.clone() });
        }
    }
    if let (Some(column), false) = (single, roles.answers.len() > 1) {
        roles.answers = vec![AnswerColumn { model: None, column }];
    }
    // Without a single answer column, the model column names something else.
    if roles.answers.iter().all(|answer| answer.model.is_some()) {
        roles.model = None;
    }
    roles
}

/// Returns the roles of a table that may have one answer per row: a column names the model, and no column but
/// `answer` can have its text. Without the model's column, `answer` would be the reference.
pub(crate) fn one_answer_per_row(columns: &[String], roles: &ColumnRoles) -> Option<ColumnRoles> {
    let model = columns.iter().find(|name| MODELS.contains(&normalise(name).as_str()))?;
    let answer = roles.reference.as_ref().filter(|name| normalise(name) == "answer")?;
    let answers = vec![AnswerColumn { model: None, column: answer.clone() }];
    Some(ColumnRoles { reference: None, model: Some(model.clone()), answers, ..roles.clone() })
}

/// Returns the name of a struct with bytes of an image, as the Hugging Face Hub has it.
fn image_struct(columns: &[String]) -> Option<String> {
    let structs = columns.iter().filter_map(|column| column.strip_suffix(".bytes"));
    structs.map(str::to_owned).find(|name| IMAGES.contains(&normalise(name).as_str()))
}

/// Returns the lower-case name with `_` instead of blanks and hyphens.
fn normalise(name: &str) -> String {
    let plain = name.trim().to_lowercase();
    plain.chars().map(|c| if c == ' ' || c == '-' { '_' } else { c }).collect()
}

/// Returns the model in the name of an answer column: `answer:gpt`, `response_gpt`, `gpt_answer`.
fn model_of_column(column: &str, name: &str) -> Option<String> {
    let is_model = |part: &str| {
        let plain = normalise(part);
        let last = plain.rsplit(['_', '.']).next().unwrap_or_default();
        !plain.is_empty() && !NOT_MODELS.contains(&plain.as_str()) && !NOT_MODELS.contains(&last)
    };
    for word in ANSWER_WORDS {
        let trimmed = column.trim();
        let after =
            name.strip_prefix(word).and_then(|rest| rest.strip_prefix([':', '_', '.', '/']));
        let rest = after.and_then(|rest| trimmed.get(trimmed.len().checked_sub(rest.len())?..));
        if let Some(model) = rest.map(str::trim).filter(|rest| is_model(rest)) {
            // `model_a` is the name itself.
            let model = if *word == "model" { trimmed } else { model };
            return Some(model.to_owned());
        }
        let before = name.strip_suffix(word).and_then(|rest| rest.strip_suffix(['_', '.', '/']));
        let rest = before.and_then(|rest| trimmed.get(..rest.len()));
        if let Some(model) = rest.filter(|rest| *word != "model" && is_model(rest)) {
            return Some(model.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(columns: &str) -> String {
        let columns: Vec<String> = columns.split(',').map(str::to_owned).collect();
        guess_roles(&columns).to_string()
    }

    #[test]
    fn common_names_are_guessed() {
        let vlm = "index,question,answer,category,prediction";
        assert_eq!(guess(vlm), "id=index,question=question,reference=answer,answer=prediction");
        let wide = "ID,Image Path,Question,Reference,GPT-4 answer,response_b,answer_type";
        let expected = "id=ID,image=Image Path,question=Question,reference=Reference,\
                        answer:GPT-4=GPT-4 answer,answer:b=response_b";
        assert_eq!(guess(wide), expected);
        let long = "qid,img_path,prompt,model,response";
        let expected = "id=qid,image=img_path,question=prompt,model=model,answer=response";
        assert_eq!(guess(long), expected);
        for answer in ["answer", "text"] {
            assert_eq!(
                guess(&format!("id,image,question,reference,model_id,{answer}")),
                format!(
                    "id=id,image=image,question=question,reference=reference,model=model_id,answer={answer}"
                )
            );
        }
        let both = "id=id,question=question,reference=answer,model=model,answer=text";
        assert_eq!(guess("id,question,answer,model,text"), both);
        // Without a model or a reference, these may be something else.
        assert_eq!(
            guess("id,question,reference,text"),
            "id=id,question=question,reference=reference"
        );
        assert_eq!(guess("id,question,answer,model"), "id=id,question=question,reference=answer");
        assert_eq!(
            guess("id,question,model_a,model_b"),
            "id=id,question=question,answer:model_a=model_a,answer:model_b=model_b"
        );
        assert_eq!(
            guess("id,image,question,organ,answer_type"),
            "id=id,image=image,question=question"
        );
    }

    #[test]
    fn answer_beside_a_model_may_be_its_answer() {
        let roles = |columns: &str| {
            let columns: Vec<String> = columns.split(',').map(str::to_owned).collect();
            one_answer_per_row(&columns, &guess_roles(&columns)).map(|roles| roles.to_string())
        };
        let expected = "id=qid,question=question,model=model,answer=answer";
        assert_eq!(roles("qid,question,answer,model").as_deref(), Some(expected));
        assert_eq!(roles("qid,question,answer"), None);
        assert_eq!(roles("qid,question,reference,model"), None);
    }
}
