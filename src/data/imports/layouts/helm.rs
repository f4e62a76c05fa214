//! `scenario_state.json` of HELM.

use serde_json::Value;

use super::row_context::RowContext;
use crate::data::cases::case::case_id::parse_id;
use crate::data::imports::image_value::image_of;
use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Reads a request state; `None` for copies of an instance: perturbed ones, further trials and
/// requests about single references.
pub(super) fn read_row(
    row: &TableRow,
    context: &RowContext,
) -> Result<Option<ImportedRow>, String> {
    let instance = row.field("instance").unwrap_or(&Value::Null);
    let is_null = |value: Option<&Value>| value.is_none_or(Value::is_null);
    let trial = row.field("train_trial_index").and_then(Value::as_u64).unwrap_or(0);
    if trial > 0 || !is_null(instance.get("perturbation")) || !is_null(row.field("reference_index"))
    {
        return Ok(None);
    }
    let id = instance.get("id").and_then(parse_id).ok_or("the instance has no `id`")?;
    let input = instance.get("input").unwrap_or(&Value::Null);
    let media = input.pointer("/multimedia_content/media_objects").and_then(Value::as_array);
    let media = || media.into_iter().flatten();
    let texts = media().filter_map(|object| object.get("text").and_then(Value::as_str));
    let joined = texts.collect::<Vec<_>>().join("\n");
    let question = input.get("text").and_then(text_of).unwrap_or(joined);
    if question.trim().is_empty() {
        return Err("the input of the instance has no text".into());
    }
    let is_image = |object: &&Value| {
        let kind = object.get("content_type").and_then(Value::as_str).unwrap_or_default();
        kind.starts_with("image/")
    };
    let images: Value =
        media().filter(is_image).filter_map(|o| o.get("location")).cloned().collect();
    let mapping = row.field("output_mapping");
    let completion = row.field("result").and_then(|result| result.pointer("/completions/0/text"));
    let completion = completion.and_then(Value::as_str).unwrap_or_default().trim();
    // `A` stands for a text of the prompt.
    let mapped = mapping.and_then(|mapping| mapping.get(completion)).and_then(Value::as_str);
    let model = row.field("request").and_then(|request| request.get("model"));
    let mut imported = ImportedRow {
        reference: correct_reference(instance),
        answers: vec![ImportedAnswer {
            model: model.and_then(Value::as_str).map(str::to_owned),
            text: mapped.unwrap_or(completion).to_owned(),
        }],
        question: Some(question),
        ..ImportedRow::default()
    };
    imported.set_image(image_of(&images, &id, &context.folders));
    imported.id = Some(id);
    Ok(Some(imported))
}

/// Returns the first reference with the tag `correct`.
fn correct_reference(instance: &Value) -> Option<String> {
    let references = instance.get("references")?.as_array()?;
    let is_correct = |reference: &&Value| {
        let tags = reference.get("tags").and_then(Value::as_array);
        tags.is_some_and(|tags| tags.iter().any(|tag| tag == "correct"))
    };
    references.iter().find(is_correct)?.pointer("/output/text").and_then(text_of)
}
