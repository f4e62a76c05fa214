//! GGUF files, llama.cpp's form of a checkpoint: metadata, tokenizer and tensors in one file
//! (`docs/gguf.md` of `ggml`).
//!
//! Candle has a reader too, but a list of small numbers takes it dozens of times the room of the
//! file, and an alignment of zero ends the program; the one here bounds everything by the file.

mod header;
mod value;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

pub(crate) use header::{Header, Info};
use value::Source;
pub(crate) use value::Value;

use crate::checkpoints::store::tensor_store::{StoredTensor, TensorStore};
use crate::support::digest::{Digest, HashingReader};

/// Where a tensor of a file goes.
pub(crate) struct TensorPlacement {
    /// The name that layers load it by.
    pub name: String,
    /// Its heads, where the rows of each were rearranged by llama.cpp.
    pub heads: Option<usize>,
}

type GgufFile = Source<BufReader<HashingReader<File>>>;

/// The header of a file.
pub(crate) fn header(path: &Path) -> Result<Header> {
    Ok(open(path)?.1)
}

fn open(path: &Path) -> Result<(GgufFile, Header)> {
    let file = File::open(path).context("it cannot be read")?;
    let len = file.metadata().context("it cannot be read")?.len();
    let mut source = Source::new(BufReader::new(HashingReader::new(file)), len);
    let header = Header::read(&mut source, len)?;
    Ok((source, header))
}

/// Reads a file: its hash and its tensors, each where `place` puts it.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    store: &mut TensorStore,
    place: impl Fn(&Info) -> Result<TensorPlacement>,
) -> Result<(Digest, Vec<(String, StoredTensor)>)> {
    let (mut source, header) = open(path)?;
    let mut tensors = Vec::new();
    let mut bytes = Vec::new();
    for info in &header.tensors {
        let skipped = (header.start + info.offset).saturating_sub(source.read);
        bytes.clear();
        source.append(skipped, &mut bytes)?;
        bytes.clear();
        source
            .append(info.bytes, &mut bytes)
            .with_context(|| format!("tensor `{}`", info.name))?;
        let TensorPlacement { name, heads } = place(info)?;
        if let Some(heads) = heads {
            bytes = half_by_half(&bytes, &info.shape, heads)
                .with_context(|| format!("tensor `{}`", info.name))?;
        }
        let stored = store.keep((file, &info.name), &bytes, info.encoding, &info.shape)?;
        tensors.push((name, stored));
    }
    let mut whole = source.into_inner();
    io::copy(&mut whole, &mut io::sink()).context("it cannot be read")?;
    Ok((whole.into_inner().digest(), tensors))
}

/// The rows of queries or keys as transformers orders them. It rotates the first half of a head
/// against the second, llama.cpp each even row against the next odd one, and so writes the rows of
/// both halves in turn (`permute` in its `convert_hf_to_gguf.py`).
fn half_by_half(bytes: &[u8], shape: &[usize], heads: usize) -> Result<Vec<u8>> {
    let rows = shape.first().copied().unwrap_or(0);
    let whole = rows > 0 && heads > 0 && rows % (2 * heads) == 0;
    if !whole || bytes.is_empty() || !bytes.len().is_multiple_of(rows) {
        bail!("its shape {shape:?} is not that of {heads} heads");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_head_come_back_half_by_half() -> Result<()> {
        // Two heads of four rows of two bytes; the file has the halves in turn.
        let rows = |order: [u8; 8]| order.into_iter().flat_map(|i| [i, 100 + i]).collect();
        let file: Vec<u8> = rows([0, 2, 1, 3, 4, 6, 5, 7]);
        let ours: Vec<u8> = rows([0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(half_by_half(&file, &[8, 2], 2)?, ours);
        assert!(half_by_half(&file, &[8, 2], 3).is_err());
        assert!(half_by_half(&[], &[], 2).is_err());
        Ok(())
    }
}
