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

use header::MAX_HEADER;
pub(crate) use header::{Header, Info, json};

use crate::checkpoints::store::tensor_store::{StoredTensor, TensorStore};
use crate::support::digest::{Digest, HashingReader};

/// Name of a tensor in the crates, and the permutation of its rows.
pub(crate) struct TensorPlacement {
    /// Name that layers load it by.
    pub name: String,
    /// Number of heads, if llama.cpp permuted the rows of each head.
    pub heads: Option<usize>,
}

/// An open file: the parsed header, the bytes read so far and the rest.
struct GgufFile {
    header: Header,
    head: Vec<u8>,
    rest: HashingReader<File>,
}

/// Reads the header of a file.
pub(crate) fn header(path: &Path) -> Result<Header> {
    Ok(open(path)?.header)
}

fn open(path: &Path) -> Result<GgufFile> {
    let file = File::open(path).context("cannot be read")?;
    let len = file.metadata().context("cannot be read")?.len();
    let mut rest = HashingReader::new(file);
    let head = take(&mut rest, len.min(MAX_HEADER))?;
    let header = Header::parse(&head, len)?;
    Ok(GgufFile { header, head, rest })
}

/// Reads exactly `n` bytes.
fn take(source: impl Read, n: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let got = source
        .take(n)
        .read_to_end(&mut bytes)
        .context("cannot be read")?;
    if (got as u64) < n {
        bail!("unexpected end of file\nhint: download the file again");
    }
    Ok(bytes)
}

/// Reads a file. Returns its hash and its tensors, each under the name that `place` returns.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    store: &mut TensorStore,
    place: impl Fn(&Info) -> Result<TensorPlacement>,
) -> Result<(Digest, Vec<(String, StoredTensor)>)> {
    let GgufFile { header, head, rest } = open(path)?;
    let mut source = head.as_slice().chain(rest);
    let mut position = 0;
    let mut tensors = Vec::new();
    for info in &header.tensors {
        let offset = header.start + info.offset;
        let mut gap = source.by_ref().take(offset - position);
        io::copy(&mut gap, &mut io::sink()).context("cannot be read")?;
        let context = || format!("tensor `{}`", info.name);
        let mut bytes = take(&mut source, info.bytes).with_context(context)?;
        position = offset + info.bytes;
        let TensorPlacement { name, heads } = place(info)?;
        if let Some(heads) = heads {
            bytes = half_by_half(&bytes, &info.shape, heads).with_context(context)?;
        }
        let stored = store.keep((file, &info.name), &bytes, info.encoding, &info.shape)?;
        tensors.push((name, stored));
    }
    io::copy(&mut source, &mut io::sink()).context("cannot be read")?;
    Ok((source.into_inner().1.digest(), tensors))
}

/// Reorders the rows of queries or keys from the order of llama.cpp to that of transformers.
///
/// transformers rotates the first half of a head against the second half. llama.cpp rotates each even row
/// against the next odd row, and therefore interleaves the halves (`permute` in its
/// `convert_hf_to_gguf.py`).
fn half_by_half(bytes: &[u8], shape: &[usize], heads: usize) -> Result<Vec<u8>> {
    let rows = shape.first().copied().unwrap_or(0);
    let whole = rows > 0 && heads > 0 && rows % (2 * heads) == 0;
    if !whole || bytes.is_empty() || !bytes.len().is_multiple_of(rows) {
        bail!("shape {shape:?} does not fit {heads} heads");
    }
    let (row, half) = (bytes.len() / rows, rows / heads / 2);
    let mut ordered = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(2 * half * row) {
        for parity in [0, 1] {
            let every_other = head.chunks_exact(row).skip(parity).step_by(2);
            every_other.for_each(|row| ordered.extend_from_slice(row));
        }
    }
    Ok(ordered)
}
