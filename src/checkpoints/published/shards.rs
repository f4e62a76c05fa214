//! Which files of a folder hold its weights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};

use super::config_json::json;
use crate::checkpoints::store::tensor_store::StoredTensor;
use crate::checkpoints::store::weight_files::{WeightFiles, is_buffer};

/// The forms in which weights lie, the first that is there being read: an index of several files,
/// or one file.
const FORMS: [(&str, &str); 2] = [
    ("model.safetensors.index.json", "model.safetensors"),
    ("pytorch_model.bin.index.json", "pytorch_model.bin"),
];

/// All tensors of a folder by the names they have there. The hash of each file is added to
/// `files`.
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
        "{}: it holds no model.safetensors and no pytorch_model.bin, whole or with an index\n\
         hint: fetch the weights of the checkpoint too",
        folder.display()
    )
}

/// The file of each tensor.
fn index_of(path: &Path) -> Result<BTreeMap<String, String>> {
    let mut map = json(path)?;
    let places = map.remove("weight_map").context("no weight_map")?;
    let places: BTreeMap<String, String> =
        serde_json::from_value(places).context("weight_map names no files")?;
    for file in places.values() {
        let mut parts = Path::new(file).components();
        if !matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        ) {
            bail!("`{file}` is not the name of a file in the folder");
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
            "{}: it names `{absent}`, which is not there\n\
             hint: fetch the file; the checkpoint has {} files of weights",
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
                    "{}: tensor `{name}` is not in it by {index}",
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
            "{}: there is no tensor `{name}` in it, where {index} has it",
            folder.join(file).display()
        );
    }
    Ok(tensors)
}
