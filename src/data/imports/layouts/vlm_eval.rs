//! `MODEL_DATASET.xlsx`, `.tsv` or `.json` of VLMEvalKit.

use serde_json::Map;

use super::row_context::RowContext;
use crate::data::cases::case::case_id::parse_id;
use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Fields that become `meta`.
const META: [&str; 4] = ["category", "l2-category", "split", "answer_type"];

/// Splits the name of a file into model and data set. If the file lies in a folder of its model,
/// that is the model. Otherwise the data set is what follows the last lower-case word.
pub(super) fn split_stem(stem: &str, folders: &[String]) -> (String, String) {
    let of_folder = folders.iter().find_map(|folder| {
        let dataset = stem.strip_prefix(folder.as_str())?.strip_prefix('_')?;
        Some((folder.clone(), dataset.to_owned()))
    });
    if let Some(split) = of_folder {
        return split;
    }
    let parts: Vec<&str> = stem.split('_').collect();
    let is_dataset = |part: &&str| !part.contains(|c: char| c.is_lowercase());
    let upper = parts.iter().rev().take_while(|part| is_dataset(part)).count();
    let count = upper.clamp(1, parts.len().saturating_sub(1).max(1));
    let (model, dataset) = parts.split_at(parts.len().saturating_sub(count));
    if model.is_empty() {
        return (stem.to_owned(), stem.to_owned());
    }
    (model.join("_"), dataset.join("_"))
}

/// Reads a row. Options of multiple-choice questions are added to the question.
pub(super) fn read_row(row: &TableRow, context: &mut RowContext) -> Result<ImportedRow, String> {
    let text = |name: &str| row.field(name).and_then(text_of);
    let id = row.field("index").and_then(parse_id).ok_or("column `index` has no number")?;
    let mut question = text("question").ok_or("column `question` is empty")?;
    let options = ('A'..='Z').map_while(|letter| {
        let option = row.fields.get(letter.to_string().as_str()).and_then(text_of)?;
        Some(format!("\n{letter}. {option}"))
    });
    question.extend(options);
    let mut meta = Map::new();
    for name in META {
        if let Some(value) = text(name) {
            meta.insert(name.to_owned(), value.into());
        }
    }
    let answer = text("prediction").unwrap_or_default();
    let mut imported = ImportedRow {
        question: Some(question),
        reference: text("answer"),
        answers: vec![ImportedAnswer { model: None, text: answer }],
        meta,
        ..ImportedRow::default()
    };
    imported.set_image(context.vlm_images.find(&id, row, &context.folders));
    imported.id = Some(id);
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_and_data_set_are_in_the_file_name() {
        let split = |stem: &str, folder: &str| {
            let (model, dataset) = split_stem(stem, &["T20261124-020202".into(), folder.into()]);
            format!("{model} {dataset}")
        };
        assert_eq!(split("llava_v1.5_7b_VQA_RAD", "x"), "llava_v1.5_7b VQA_RAD");
        assert_eq!(split("Qwen2-VL-7B-Instruct_PathVQA", "x"), "Qwen2-VL-7B-Instruct PathVQA");
        assert_eq!(split("GPT4V_MINI_SLAKE", "GPT4V_MINI"), "GPT4V_MINI SLAKE");
        assert_eq!(split("alone", "x"), "alone alone");
    }
}
