//! JSON files of a published checkpoint.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::support::files::regular_file;

/// The file that makes a folder a published checkpoint.
pub(crate) const CONFIG_FILE: &str = "config.json";
/// The file that makes a folder an adapter of PEFT.
pub(crate) const ADAPTER_CONFIG_FILE: &str = "adapter_config.json";

/// Returns true if a folder contains an adapter of PEFT.
pub(crate) fn is_adapter_folder(folder: &Path) -> bool {
    folder.join(ADAPTER_CONFIG_FILE).is_file()
}

/// Returns true if the file name has the extension `.gguf`.
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf"))
}

/// Reads a JSON file that contains one object of at most 64 MiB.
pub(crate) fn read_json(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>> {
    const MAX_SIZE: u64 = 64 << 20;
    let size = std::fs::metadata(path).context("cannot be read")?.len();
    if size > MAX_SIZE {
        bail!("{size} bytes, expected at most {MAX_SIZE}");
    }
    let text = regular_file::read(path).context("cannot be read")?;
    serde_json::from_slice(&text).context("not a JSON object")
}
