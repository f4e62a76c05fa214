//! One row of a table, whatever the file format.

use std::sync::Arc;

use serde_json::{Map, Value};

/// One row: its fields by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableRow {
    /// Fields with text or JSON.
    pub(crate) fields: Map<String, Value>,
    /// Fields with bytes.
    pub(crate) bytes: Vec<(String, Arc<[u8]>)>,
}

/// A row with its line or row number, from 1.
pub(crate) type NumberedTableRow = (u64, Result<TableRow, String>);

/// The rows of a file.
pub(crate) type TableRows = Box<dyn Iterator<Item = NumberedTableRow> + Send>;

impl TableRow {
    /// Returns the names of all fields.
    pub(crate) fn names(&self) -> Vec<String> {
        self.fields.keys().cloned().chain(self.bytes.iter().map(|(name, _)| name.clone())).collect()
    }

    /// Returns a field by its name, or by its path in nested objects (`doc.question`). Upper and
    /// lower case are the same if no name is equal.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.fields.get(name) {
            return Some(value);
        }
        if let Some((first, rest)) = name.split_once('.') {
            let nested = self.fields.get(first);
            if let Some(value) = nested.and_then(|value| nested_field(value, rest)) {
                return Some(value);
            }
        }
        let mut fields = self.fields.iter();
        fields.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the bytes of a field.
    pub(crate) fn bytes(&self, name: &str) -> Option<&Arc<[u8]>> {
        self.bytes.iter().find(|(key, _)| key == name).map(|(_, bytes)| bytes)
    }
}

fn nested_field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// Returns the text of a field: strings and numbers as they are, lists joined; `None` for null and
/// blank texts.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
        Value::Array(values) => {
            let texts: Vec<String> = values.iter().filter_map(text_of).collect();
            texts.join("; ")
        }
    };
    (!text.trim().is_empty()).then_some(text)
}
