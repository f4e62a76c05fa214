//! Reader of PyTorch checkpoint files (`pytorch_model*.bin`) that executes no code of the file.
//!
//! Such a file is a zip archive of raw tensor data and a pickle that maps tensors to data. Candle's
//! reader trusts the sizes, counts and nesting of the pickle, so a hostile file can crash the
//! program or exhaust memory. This reader limits all three.

mod pickle;
mod state_dict;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use zip::{CompressionMethod, ZipArchive};

use crate::checkpoints::store::tensor_store::{EncodedTensor, FileTensors, TensorStore};
use crate::checkpoints::torch::state_dict::TensorView;
use crate::support::digest::HashingReader;
use crate::support::files::regular_file;

/// Maximum pickle size in bytes. A model of 70 billion parameters needs less than one megabyte.
const MAX_PICKLE_LEN: u64 = 16 << 20;

/// Maximum size of all tensors of a storage, as a multiple of its size. A tensor and its parts share
/// a storage in some checkpoints.
const MAX_OVERLAP: usize = 4;

/// Reads a file. Returns its hash and the `wanted` tensors.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    store: &mut TensorStore,
    wanted: impl Fn(&str) -> bool,
) -> Result<FileTensors> {
    let mut hashing_reader =
        HashingReader::new(regular_file::open(path).context("cannot be read")?);
    io::copy(&mut hashing_reader, &mut io::sink()).context("cannot be read")?;
    let digest = hashing_reader.digest();
    let archive = ZipArchive::new(BufReader::new(regular_file::open(path)?));
    let mut archive = archive.map_err(|error| {
        anyhow::anyhow!(
            "malformed or incomplete zip archive: {error}\n\
             hint: download the file again; if PyTorch before 1.6 wrote it, convert it to \
             safetensors"
        )
    })?;
    let root = root_folder(&archive)?;
    let pickle = read_entry(&mut archive, &format!("{root}data.pkl"), MAX_PICKLE_LEN)?;
    if let Ok(order) = read_entry(&mut archive, &format!("{root}byteorder"), 16)
        && order != b"little"
    {
        bail!("unsupported byte order, expected little-endian");
    }
    let views = state_dict::parse_tensors(&pickle).context("malformed data.pkl")?;
    // Grouped by storage, so that a storage shared by several tensors is read once.
    let mut storages: BTreeMap<&str, Vec<&TensorView>> = BTreeMap::new();
    for view in views.iter().filter(|view| wanted(&view.name)) {
        storages.entry(&view.storage).or_default().push(view);
    }
    let mut tensors = Vec::new();
    for (storage, views) in storages {
        let name = format!("{root}data/{storage}");
        let bytes = read_entry(&mut archive, &name, u64::MAX)?;
        check_total_size(&views, &bytes).with_context(|| format!("storage `{storage}`"))?;
        for view in views {
            let range = view.byte_range(bytes.len())?;
            let stored = store.intern(&EncodedTensor {
                file,
                name: &view.name,
                bytes: bytes.get(range).context("tensor outside its storage")?,
                encoding: view.dtype.into(),
                shape: &view.shape,
            })?;
            tensors.push((view.name.clone(), stored));
        }
    }
    Ok(FileTensors { digest, tensors })
}

/// Checks the size of all tensors of a storage: many overlapping ones would make a small file take
/// much memory. Tensors of the same values, such as tied weights, count once.
fn check_total_size(views: &[&TensorView], storage: &[u8]) -> Result<()> {
    let ranges = views.iter().map(|view| {
        let range = view.byte_range(storage.len())?;
        Ok((range.start, range.end))
    });
    let ranges: BTreeSet<(usize, usize)> = ranges.collect::<Result<_>>()?;
    let total = ranges.iter().fold(0, |sum: usize, (start, end)| sum.saturating_add(end - start));
    if total > storage.len().saturating_mul(MAX_OVERLAP) {
        bail!(
            "its tensors have {total} bytes, expected at most {MAX_OVERLAP} times its {} bytes\n\
             hint: do not trust this file; use a safetensors version of the checkpoint",
            storage.len()
        );
    }
    Ok(())
}

/// Returns the top folder of the archive, with a trailing slash.
fn root_folder<R: Read + Seek>(archive: &ZipArchive<R>) -> Result<String> {
    for name in archive.file_names() {
        let name = name.context("an entry name cannot be read")?;
        if let Some(root) = name.strip_suffix("data.pkl") {
            return Ok(root.to_owned());
        }
    }
    bail!("missing archive entry `data.pkl`\nhint: use a file written by torch.save")
}

/// Reads an entry of at most `max_size` bytes. Entries are uncompressed, so none is longer than the
/// file.
fn read_entry<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    name: &str,
    max_size: u64,
) -> Result<Vec<u8>> {
    let mut entry = archive
        .by_name(name)
        .map_err(|error| anyhow::anyhow!("archive entry `{name}`: {error}"))?;
    let size = entry.size();
    if entry.compression() != CompressionMethod::Stored || entry.compressed_size() != size {
        bail!(
            "archive entry `{name}` is compressed, expected an uncompressed entry as torch.save \
             writes"
        );
    }
    if size > max_size {
        bail!("archive entry `{name}`: {size} bytes, expected at most {max_size}");
    }
    let mut bytes = Vec::new();
    // Allocates for the data that exist, not for the size that the archive declares.
    entry
        .by_ref()
        .take(size)
        .read_to_end(&mut bytes)
        .with_context(|| format!("archive entry `{name}` cannot be read"))?;
    if bytes.len() as u64 != size {
        bail!("archive entry `{name}` ends after {} of {size} bytes", bytes.len());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_tensors_are_limited() -> Result<()> {
        let storage = [0; 400];
        let view = |offset: usize| TensorView::new("w", offset, &[60]);
        let total =
            |views: &[TensorView]| check_total_size(&views.iter().collect::<Vec<_>>(), &storage);
        total(&[view(0), view(40), view(20)])?;
        // Tied weights.
        total(&vec![view(3); 100])?;
        let many: Vec<TensorView> = (0..40).map(view).collect();
        let error = total(&many).map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("9600 bytes, expected at most 4 times")));
        Ok(())
    }
}
