//! Weight files of a checkpoint folder: one file, or shards with an index.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};

use super::config_json::json;
use crate::checkpoints::store::tensor_store::StoredTensor;
use crate::checkpoints::store::weight_files::{WeightFiles, is_buffer};

/// Weight layouts in order of preference: the index of several shards, or one file.
const FORMS: [(&str, &str); 2] = [
    ("model.safetensors.index.json", "model.safetensors"),
    ("pytorch_model.bin.index.json", "pytorch_model.bin"),
];

/// Reads all tensors of a folder under their original names. Adds the hash of each file to `files`.
pub(super) fn read(
    folder: &Path,
    library: &mut WeightFiles,
    files: &mut BTreeMap<String, String>,
) -> Result<Vec<(String, StoredTensor)>> {
    let mut note = |file: &str, hash: String| {
        let last = folder.file_name().unwrap_or_default().to_string_lossy();
        files.insert(format!("{last}/{file}"), hash);
    };
    for (index, single) in FORMS {
        let path = folder.join(index);
        if path.is_file() {
            let placed = index_of(&path).with_context(|| path.display().to_string())?;
            return sharded(folder, index, &placed, library, &mut note);
        }
        let path = folder.join(single);
        if path.is_file() {
            let opened = library.of_checkpoint(&path)?;
            note(single, opened.0.to_string());
            return Ok(opened.1.clone());
        }
    }
    bail!(
        "{}: no weights, expected model.safetensors or pytorch_model.bin, or the index of one\n\
         hint: download the weights of the checkpoint too",
        folder.display()
    )
}

/// Reads the file name of each tensor from an index.
fn index_of(path: &Path) -> Result<BTreeMap<String, String>> {
    let mut map = json(path)?;
    let places = map.remove("weight_map").context("weight_map is missing")?;
    let places: BTreeMap<String, String> =
        serde_json::from_value(places).context("weight_map does not map tensors to files")?;
    for file in places.values() {
        let mut parts = Path::new(file).components();
        if !matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        ) {
            bail!("`{file}`, expected the name of a file in the folder");
        }
    }
    Ok(places)
}

fn sharded(
    folder: &Path,
    index: &str,
    placed: &BTreeMap<String, String>,
    library: &mut WeightFiles,
    note: &mut impl FnMut(&str, String),
) -> Result<Vec<(String, StoredTensor)>> {
    let shards: BTreeSet<&String> = placed.values().collect();
    if let Some(absent) = shards.iter().find(|file| !folder.join(file).is_file()) {
        bail!(
            "{}: missing file `{absent}`\n\
             hint: download it; the checkpoint has {} weight files",
            folder.join(index).display(),
            shards.len()
        );
    }
    let mut tensors = Vec::new();
    for file in shards {
        let path = folder.join(file);
        let opened = library.of_checkpoint(&path)?;
        note(file, opened.0.to_string());
        for (name, stored) in &opened.1 {
            if placed.get(name) != Some(file) {
                bail!(
                    "{}: unexpected tensor `{name}`, not listed in {index} for this file",
                    path.display()
                );
            }
            tensors.push((name.clone(), stored.clone()));
        }
    }
    let found: BTreeSet<&String> = tensors.iter().map(|(name, _)| name).collect();
    let lacks = |(name, _): &(&String, _)| !found.contains(name) && !is_buffer(name);
    if let Some((name, file)) = placed.iter().find(lacks) {
        bail!(
            "{}: missing tensor `{name}`, listed in {index}",
            folder.join(file).display()
        );
    }
    Ok(tensors)
}
