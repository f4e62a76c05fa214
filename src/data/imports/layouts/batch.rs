//! Input and output of OpenAI's batch API, and of servers with the same interface.

use serde_json::Value;

use super::row_context::RowContext;
use crate::data::cases::case::case_id::parse_id;
use crate::data::imports::image_value::image_of;
use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow};
use crate::data::imports::rows::table_row::TableRow;

/// Reads a request: the question and the image of its last user message.
pub(super) fn read_input(row: &TableRow, context: &RowContext) -> Result<ImportedRow, String> {
    let id = custom_id(row)?;
    let body = row.field("body").unwrap_or(&Value::Null);
    let messages = body.get("messages").or_else(|| body.get("input")).unwrap_or(&Value::Null);
    let is_user = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("user");
    let content = match messages {
        Value::Array(messages) => {
            messages.iter().rfind(is_user).and_then(|message| message.get("content"))
        }
        other => Some(other),
    };
    let content = content.ok_or("the request has no message of a user")?;
    let question = text_parts(content).join("\n").trim().to_owned();
    if question.is_empty() {
        return Err("the message of the user has no text".into());
    }
    let mut imported = ImportedRow { question: Some(question), ..ImportedRow::default() };
    imported.set_image(image_of(&image_parts(content), &id, &context.folders));
    imported.id = Some(id);
    Ok(imported)
}

/// Reads a response. The answer to a failed request is empty.
pub(super) fn read_output(row: &TableRow) -> Result<ImportedRow, String> {
    let body = row.field("response").and_then(|response| response.get("body"));
    let body = body.unwrap_or(&Value::Null);
    let chat = body.pointer("/choices/0/message/content");
    let chat = chat.or_else(|| body.pointer("/choices/0/text"));
    let text = match (chat, body.get("output").and_then(Value::as_array)) {
        (Some(content), _) => text_parts(content).join("\n"),
        (None, Some(output)) => {
            let contents = output.iter().filter_map(|item| item.get("content"));
            contents.flat_map(text_parts).collect::<Vec<_>>().join("\n")
        }
        (None, None) => String::new(),
    };
    let model = body.get("model").and_then(Value::as_str).map(str::to_owned);
    Ok(ImportedRow {
        id: Some(custom_id(row)?),
        answers: vec![ImportedAnswer { model, text }],
        failure: failure(row, body),
        ..ImportedRow::default()
    })
}

/// Returns why the server gave no answer; `None` if it did.
fn failure(row: &TableRow, body: &Value) -> Option<String> {
    let error =
        [row.field("error"), body.get("error")].into_iter().flatten().find(|e| !e.is_null());
    let status = row.field("response").and_then(|response| response.get("status_code"));
    let status = status.and_then(Value::as_u64).filter(|status| *status >= 400);
    if error.is_none() && status.is_none() {
        return None;
    }
    let texts =
        ["code", "message"].map(|key| error.and_then(|e| e.get(key)).and_then(Value::as_str));
    let status = status.map(|status| format!("status {status}"));
    let parts = status.as_deref().into_iter().chain(texts.into_iter().flatten());
    let reason = parts.collect::<Vec<_>>().join(": ");
    Some(if reason.is_empty() { "the server gave no reason".to_owned() } else { reason })
}

fn custom_id(row: &TableRow) -> Result<String, String> {
    let id = row.field("custom_id").and_then(parse_id);
    id.ok_or_else(|| "field `custom_id` is missing or empty".to_owned())
}

/// Returns the texts of a message.
fn text_parts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the images of a message.
fn image_parts(content: &Value) -> Value {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part.get("image_url")).cloned().collect()
}
