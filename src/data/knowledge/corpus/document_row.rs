//! Documents from the rows of tables: MedRAG's chunks, MedQuAD's pairs, or any title and text.

use serde_json::Value;

use super::corpus_row::{CorpusRow, KnowledgeDocument};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Names of the field with the text, the first one that a row has. MedRAG repeats title and
/// content in `contents`, so it comes last.
const TEXT_FIELDS: [&str; 6] = ["text", "content", "answer", "passage", "body", "contents"];
const TITLE_FIELDS: [&str; 4] = ["title", "focus", "question_focus", "document_focus"];
const ID_FIELDS: [&str; 5] = ["id", "question_id", "document_id", "doc_id", "_id"];
const SOURCE_FIELDS: [&str; 2] = ["source", "document_source"];

/// Converts a row. `file`: name of its file, for a row without an id.
///
/// # Errors
///
/// The row has no field with a text.
pub(super) fn to_corpus_row(row: &TableRow, file: &str, number: u64) -> Result<CorpusRow, String> {
    let mut text_fields = TEXT_FIELDS.iter().filter_map(|name| row.field(name)).peekable();
    if text_fields.peek().is_none() {
        return Err(format!(
            "no text: expected a field `text`, `content` or `answer`, found {}",
            describe_names(row)
        ));
    }
    let Some(text) = text_fields.find_map(plain_text) else {
        return Ok(CorpusRow::WithoutText);
    };
    let first = |names: &[&str]| names.iter().find_map(|name| row.field(name).and_then(text_of));
    let id = first(&ID_FIELDS).unwrap_or_else(|| format!("{file}:{number}"));
    let id = source_id(first(&SOURCE_FIELDS).as_deref(), &id);
    Ok(CorpusRow::Document(KnowledgeDocument {
        id,
        title: first(&TITLE_FIELDS).unwrap_or_default(),
        text,
    }))
}

/// Returns the id of a document of a source. Ids of MedQuAD are unique within their source.
pub(super) fn source_id(source: Option<&str>, id: &str) -> String {
    match source.map(str::trim) {
        None | Some("") => id.trim().to_owned(),
        Some(source) => format!("{source}/{}", id.trim()),
    }
}

/// Returns the text of a field, if it has one.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        // Numbers and objects are no texts.
        Value::String(_) | Value::Array(_) => text_of(value),
        _ => None,
    }
}

/// Lists the names of the fields for a message.
fn describe_names(row: &TableRow) -> String {
    let names: Vec<String> = row.names().iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn convert(value: Value) -> Result<CorpusRow, String> {
        let Value::Object(fields) = value else { return Err("no object".to_owned()) };
        to_corpus_row(&TableRow { fields, bytes: Vec::new() }, "a.jsonl", 3)
    }

    fn document(id: &str, title: &str, text: &str) -> CorpusRow {
        let [id, title, text] = [id, title, text].map(str::to_owned);
        CorpusRow::Document(KnowledgeDocument { id, title, text })
    }

    #[test]
    fn rows_of_published_corpora_are_documents() {
        let medrag = json!({"id": "a_1", "title": "T", "content": "C", "contents": "T. C"});
        assert_eq!(convert(medrag), Ok(document("a_1", "T", "C")));
        let medquad =
            json!({"id": "7-1", "source": "GHR", "focus": "F", "question": "Q", "answer": "A"});
        assert_eq!(convert(medquad), Ok(document("GHR/7-1", "F", "A")));
        let hub = json!({"document_id": "7", "document_source": "GARD", "question_id": "7-2",
            "question_focus": "F", "question": "Q", "answer": "A"});
        assert_eq!(convert(hub), Ok(document("GARD/7-2", "F", "A")));
        assert_eq!(convert(json!({"contents": "only"})), Ok(document("a.jsonl:3", "", "only")));
        assert_eq!(convert(json!({"id": 4, "text": ["a", "b"]})), Ok(document("4", "", "a; b")));
    }

    #[test]
    fn removed_answers_are_no_documents_and_other_rows_are_errors() {
        for text in [json!(null), json!(""), json!("  ")] {
            let row = json!({"id": "1", "question": "Q", "answer": text});
            assert_eq!(convert(row), Ok(CorpusRow::WithoutText));
        }
        let error = convert(json!({"id": "1", "image": "a.png"})).unwrap_err();
        assert!(error.contains("expected a field `text`") && error.contains("`image`"), "{error}");
    }
}
