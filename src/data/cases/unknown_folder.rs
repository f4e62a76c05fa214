//! The error for a folder without cases.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::files::regular_file;

/// Returns the error for a folder without cases. `files`: its JSONL files; `known_layouts`: what a folder
/// may contain.
pub(super) fn no_cases_error(path: &Path, files: &[PathBuf], known_layouts: &str) -> anyhow::Error {
    let hint = match files.first() {
        Some(_) if path.join("run.json").exists() => {
            "pass the cases of this run, not its output".into()
        }
        Some(file) if contains_preferences(file) => format!(
            "{} contains preference pairs for training; \
             run `acem3 data phantoms` to generate cases",
            file.display()
        ),
        Some(file) => format!("pass the file {} to judge its cases", file.display()),
        None => format!("expected {known_layouts}"),
    };
    anyhow::anyhow!(
        "{}: unknown layout, looked for cases.jsonl, questions.csv, VQA-RAD's or \
         SLAKE's *.json, *.parquet and */*.parquet\nhint: {hint}",
        path.display()
    )
}

/// Returns true if a file starts with a preference pair, as written by `acem3 data preferences`.
fn contains_preferences(file: &Path) -> bool {
    let mut line = String::new();
    let read = regular_file::open(file)
        .and_then(|file| BufReader::new(file.take(1 << 20)).read_line(&mut line));
    let value = serde_json::from_str::<Value>(&line).unwrap_or_default();
    read.is_ok() && ["prompt", "chosen", "rejected"].iter().all(|name| value.get(name).is_some())
}
