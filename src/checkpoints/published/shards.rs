//! Weight files of a checkpoint folder: one file, or shards with an index.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};

use super::config_json::read_json;
use crate::checkpoints::store::tensor_store::StoredTensor;
use crate::checkpoints::store::weight_files::WeightFiles;

/// Weight layouts in order of preference: the index of several shards, or one file.
const WEIGHT_FILES: [(&str, &str); 2] = [
    ("model.safetensors.index.json", "model.safetensors"),
    ("pytorch_model.bin.index.json", "pytorch_model.bin"),
];

/// Returns true if a folder contains the weights of a checkpoint.
pub(super) fn has_weights(folder: &Path) -> bool {
    WEIGHT_FILES
        .iter()
        .any(|(index, single)| folder.join(index).is_file() || folder.join(single).is_file())
}

/// Reads all tensors of a folder under their original names. Adds the hash of each file to `files`.
pub(super) fn read(
    folder: &Path,
    weight_files: &mut WeightFiles,
    files: &mut BTreeMap<String, String>,
) -> Result<Vec<(String, StoredTensor)>> {
    let mut add_hash = |file: &str, hash: String| {
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
        files.insert(format!("{folder_name}/{file}"), hash);
    };
    for (index, single) in WEIGHT_FILES {
        let path = folder.join(index);
        if path.is_file() {
            let weight_map = read_index(&path).with_context(|| path.display().to_string())?;
            return read_shards(folder, index, &weight_map, weight_files, &mut add_hash);
        }
        let path = folder.join(single);
        if path.is_file() {
            let loaded = weight_files.read_checkpoint_file(&path)?;
            add_hash(single, loaded.digest.to_string());
            return Ok(loaded.tensors.clone());
        }
    }
    bail!(
        "{}: no weights, expected model.safetensors or pytorch_model.bin, or the index of one\n\
         hint: download the weights of the checkpoint too",
        folder.display()
    )
}

/// Reads the file name of each tensor from an index.
fn read_index(path: &Path) -> Result<BTreeMap<String, String>> {
    let mut map = read_json(path)?;
    let weight_map = map.remove("weight_map").context("weight_map is missing")?;
    let weight_map: BTreeMap<String, String> =
        serde_json::from_value(weight_map).context("weight_map does not map tensors to files")?;
    for file in weight_map.values() {
        let mut parts = Path::new(file).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            bail!("`{file}`, expected the name of a file in the folder");
        }
    }
    Ok(weight_map)
}

fn read_shards(
    folder: &Path,
    index: &str,
    weight_map: &BTreeMap<String, String>,
    weight_files: &mut WeightFiles,
    add_hash: &mut impl FnMut(&str, String),
) -> Result<Vec<(String, StoredTensor)>> {
    let read = weight_map.iter().filter(|(name, _)| weight_files.reads(name));
    let shards: BTreeSet<&String> = read.map(|(_, file)| file).collect();
    if let Some(missing) = shards.iter().find(|file| !folder.join(file).is_file()) {
        bail!(
            "{}: missing file `{missing}`\n\
             hint: download it; the checkpoint has {} weight files",
            folder.join(index).display(),
            shards.len()
        );
    }
    let mut tensors = Vec::new();
    for file in shards {
        let path = folder.join(file);
        let loaded = weight_files.read_checkpoint_file(&path)?;
        add_hash(file, loaded.digest.to_string());
        for (name, stored) in &loaded.tensors {
            if weight_map.get(name) != Some(file) {
                bail!(
                    "{}: unexpected tensor `{name}`, not listed in {index} for this file",
                    path.display()
                );
            }
            tensors.push((name.clone(), stored.clone()));
        }
    }
    let names: BTreeSet<&String> = tensors.iter().map(|(name, _)| name).collect();
    let is_missing = |(name, _): &(&String, _)| !names.contains(name) && weight_files.reads(name);
    if let Some((name, file)) = weight_map.iter().find(is_missing) {
        bail!("{}: missing tensor `{name}`, listed in {index}", folder.join(file).display());
    }
    Ok(tensors)
}
