//! GGUF files, the checkpoint format of llama.cpp: metadata, tokenizer and tensors in one file
//! (`docs/gguf.md` of `ggml`).

mod header;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use header::MAX_HEADER_LEN;
pub(crate) use header::{GgufHeader, GgufTensorInfo, to_json};

use crate::checkpoints::store::tensor_store::{EncodedTensor, FileTensors, TensorStore};
use crate::support::digest::HashingReader;
use crate::support::files::regular_file;

/// Mapping of a tensor: its name in the model, and the permutation of its rows.
pub(crate) struct TensorMapping {
    /// Name that layers load it by.
    pub name: String,
    /// Number of heads, if llama.cpp permuted the rows of each head.
    pub permuted_heads: Option<usize>,
}

/// An open file: the parsed header, the bytes read for it and the unread rest.
struct GgufFile {
    header: GgufHeader,
    head: Vec<u8>,
    rest: HashingReader<File>,
}

/// Reads the header of a file.
pub(crate) fn read_header(path: &Path) -> Result<GgufHeader> {
    Ok(open(path)?.header)
}

fn open(path: &Path) -> Result<GgufFile> {
    let file = regular_file::open(path).context("cannot be read")?;
    let len = file.metadata().context("cannot be read")?.len();
    let mut rest = HashingReader::new(file);
    let head = read_exact(&mut rest, len.min(MAX_HEADER_LEN))?;
    let header = GgufHeader::parse(&head, len)?;
    Ok(GgufFile { header, head, rest })
}

/// Reads exactly `n` bytes.
fn read_exact(source: impl Read, n: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let count = source.take(n).read_to_end(&mut bytes).context("cannot be read")?;
    if (count as u64) < n {
        bail!("unexpected end of file\nhint: download the file again");
    }
    Ok(bytes)
}

/// Reads a file. Returns its hash and its tensors, each under the name that `map_tensor` returns.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    store: &mut TensorStore,
    map_tensor: impl Fn(&GgufTensorInfo) -> Result<TensorMapping>,
) -> Result<FileTensors> {
    let GgufFile { header, head, rest } = open(path)?;
    let mut source = head.as_slice().chain(rest);
    let mut position = 0;
    let mut tensors = Vec::new();
    for info in &header.tensors {
        let offset = header.data_start + info.offset;
        let mut gap = source.by_ref().take(offset - position);
        io::copy(&mut gap, &mut io::sink()).context("cannot be read")?;
        let context = || format!("tensor `{}`", info.name);
        let mut bytes = read_exact(&mut source, info.byte_len).with_context(context)?;
        position = offset + info.byte_len;
        let TensorMapping { name, permuted_heads } = map_tensor(info)?;
        if let Some(heads) = permuted_heads {
            bytes = unpermute_rope_rows(&bytes, &info.shape, heads).with_context(context)?;
        }
        let stored = store.intern(&EncodedTensor {
            file,
            name: &info.name,
            bytes: &bytes,
            encoding: info.encoding,
            shape: &info.shape,
        })?;
        tensors.push((name, stored));
    }
    io::copy(&mut source, &mut io::sink()).context("cannot be read")?;
    let (_, rest) = source.into_inner();
    Ok(FileTensors { digest: rest.digest(), tensors })
}

/// Reorders the rows of queries or keys from the order of llama.cpp to that of transformers.
///
/// transformers rotates the first half of a head against the second half. llama.cpp rotates each
/// even row against the next odd row, and therefore interleaves the halves (`permute` in its
/// `convert_hf_to_gguf.py`).
fn unpermute_rope_rows(bytes: &[u8], shape: &[usize], heads: usize) -> Result<Vec<u8>> {
    let rows = shape.first().copied().unwrap_or(0);
    let is_divisible = rows > 0 && heads > 0 && rows % (2 * heads) == 0;
    if !is_divisible || bytes.is_empty() || !bytes.len().is_multiple_of(rows) {
        bail!("shape {shape:?} does not fit {heads} heads");
    }
    let (row, half) = (bytes.len() / rows, rows / heads / 2);
    let mut reordered = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(2 * half * row) {
        for parity in [0, 1] {
            let every_other = head.chunks_exact(row).skip(parity).step_by(2);
            every_other.for_each(|row| reordered.extend_from_slice(row));
        }
    }
    Ok(reordered)
}
