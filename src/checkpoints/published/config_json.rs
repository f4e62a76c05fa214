//! JSON files of a published checkpoint.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// The file that makes a folder a published checkpoint.
pub(crate) const CONFIG_FILE: &str = "config.json";

/// Whether a file is one of GGUF by its name.
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("gguf"))
}

/// A JSON file that is one object. Files of settings are small; a larger one is none.
pub(crate) fn json(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>> {
    const MOST: u64 = 64 << 20;
    let size = std::fs::metadata(path).context("it cannot be read")?.len();
    if size > MOST {
        bail!("it takes {size} bytes, more than settings do");
    }
    let text = std::fs::read(path).context("it cannot be read")?;
    serde_json::from_slice(&text).context("it is not a JSON object")
}
