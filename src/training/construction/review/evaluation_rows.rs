//! The lines of a file of evaluations, with all their fields.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

use crate::support::digest::Digest;
use crate::support::files::folder::parent_folder;
use crate::support::files::regular_file;
use crate::training::preferences::{numbered_lines, read_evaluations};

/// Evaluations of a file.
#[derive(Clone, Debug)]
pub struct EvaluationRows {
    /// Folder of the file; image paths are relative to it.
    pub folder: PathBuf,
    /// The lines.
    pub rows: Vec<EvaluationRow>,
}

/// A line of the file.
#[derive(Clone, Debug)]
pub struct EvaluationRow {
    /// Hash of the prompt and the evaluation: identifies the row in a review sheet.
    pub key: String,
    /// All fields.
    pub fields: Map<String, Value>,
}

impl EvaluationRows {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// A line is malformed; the error names it.
    pub fn read(path: &Path) -> Result<Self> {
        // Checks every line.
        read_evaluations(path)?;
        let text =
            regular_file::read_to_string(path).with_context(|| path.display().to_string())?;
        let rows = numbered_lines(&text).map(|(number, line)| {
            let fields: Map<String, Value> = serde_json::from_str(line)
                .with_context(|| format!("{}, line {number}", path.display()))?;
            let mut row = EvaluationRow { key: String::new(), fields };
            let text = format!("{}\0{}", row.text("prompt"), row.completion());
            row.key = Digest::sha256(text.as_bytes()).short_hex();
            Ok(row)
        });
        Ok(Self { folder: parent_folder(path)?, rows: rows.collect::<Result<_>>()? })
    }
}

impl EvaluationRow {
    /// Returns a text field; empty if it is missing.
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the evaluation. In a file of preference pairs it is the chosen one.
    pub fn completion(&self) -> &str {
        let completion = self.fields.get("completion").or_else(|| self.fields.get("chosen"));
        completion.and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the stratum: the value of a field as text; empty if it is missing.
    pub fn stratum(&self, field: &str) -> String {
        match self.fields.get(field) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    /// Returns the path of the image; empty if there is none.
    pub fn image(&self) -> &str {
        let images = self.fields.get("images");
        images.and_then(|images| images.get(0)?.as_str()).unwrap_or_default()
    }
}
