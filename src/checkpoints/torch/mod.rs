//! PyTorch's checkpoint files (`pytorch_model*.bin`), read without executing anything.
//!
//! Such a file is a zip archive of raw bytes and a pickle that says which bytes are which tensor.
//! Candle has a reader too, but it trusts the pickle with sizes, counts and nesting, so that a
//! hostile one can end the program or take all memory; the one here bounds all three.

mod pickle;
mod state_dict;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use zip::{CompressionMethod, ZipArchive};

use crate::checkpoints::store::tensor_store::{StoredTensor, TensorStore};
use crate::checkpoints::torch::state_dict::TensorView;
use crate::support::digest::{Digest, HashingReader};

/// Longest pickle; that of a model of 70 billion parameters takes less than a megabyte.
const PICKLE: u64 = 16 << 20;

/// Reads a file: its hash and its tensors, those of names that are not `wanted` left out.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    store: &mut TensorStore,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Digest, Vec<(String, StoredTensor)>)> {
    let mut whole = HashingReader::new(File::open(path).context("it cannot be read")?);
    io::copy(&mut whole, &mut io::sink()).context("it cannot be read")?;
    let digest = whole.digest();
    let archive = ZipArchive::new(BufReader::new(File::open(path)?));
    let mut archive = archive.map_err(|error| {
        anyhow::anyhow!(
            "it is not a whole zip archive: {error}\n\
             hint: files of PyTorch before 1.6 and cut-off files are not read; fetch it again or \
             convert it to safetensors"
        )
    })?;
    let root = root(&archive)?;
    let pickle = entry(&mut archive, &format!("{root}data.pkl"), PICKLE)?;
    if let Ok(order) = entry(&mut archive, &format!("{root}byteorder"), 16)
        && order != b"little"
    {
        bail!("its numbers are not in little-endian order");
    }
    let views = crate::checkpoints::torch::state_dict::tensors(&pickle)
        .context("its pickle is not one of tensors")?;
    // By storage, so that each is read once, however many tensors look into it.
    let mut storages: BTreeMap<&str, Vec<&TensorView>> = BTreeMap::new();
    for view in views.iter().filter(|view| wanted(&view.name)) {
        storages.entry(&view.storage).or_default().push(view);
    }
    let mut tensors = Vec::new();
    for (storage, views) in storages {
        let name = format!("{root}data/{storage}");
        let bytes = entry(&mut archive, &name, u64::MAX)?;
        for view in views {
            let range = view.range(bytes.len())?;
            let bytes = bytes.get(range).context("a tensor beyond its storage")?;
            let stored = store.keep((file, &view.name), bytes, view.dtype, &view.shape)?;
            tensors.push((view.name.clone(), stored));
        }
    }
    Ok((digest, tensors))
}

/// The folder inside the archive in which everything lies, with its slash.
fn root<R: Read + Seek>(archive: &ZipArchive<R>) -> Result<String> {
    for name in archive.file_names() {
        let name = name.context("a name in the archive cannot be read")?;
        if let Some(root) = name.strip_suffix("data.pkl") {
            return Ok(root.to_owned());
        }
    }
    bail!("the archive holds no `data.pkl`\nhint: it was not written by torch.save")
}

/// The bytes of an entry of at most `most` bytes. Entries lie in the archive as they are, so that
/// none is longer than the file.
fn entry<R: Read + Seek>(archive: &mut ZipArchive<R>, name: &str, most: u64) -> Result<Vec<u8>> {
    let mut entry = archive
        .by_name(name)
        .map_err(|error| anyhow::anyhow!("`{name}` in the archive: {error}"))?;
    let size = entry.size();
    if entry.compression() != CompressionMethod::Stored || entry.compressed_size() != size {
        bail!("`{name}` in the archive is compressed, which torch.save never does");
    }
    if size > most {
        bail!("`{name}` in the archive takes {size} bytes, more than {most}");
    }
    let mut bytes = Vec::new();
    // Grows with what is really there, not with what the archive says.
    entry
        .by_ref()
        .take(size)
        .read_to_end(&mut bytes)
        .with_context(|| format!("`{name}` in the archive cannot be read"))?;
    if bytes.len() as u64 != size {
        bail!(
            "`{name}` in the archive ends after {} of {size} bytes",
            bytes.len()
        );
    }
    Ok(bytes)
}
