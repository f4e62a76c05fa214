//! Safetensors files, read tensor by tensor: no more memory than a tensor takes beside what is kept.

use std::io::Read;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use candle::DType;
use safetensors::tensor::Metadata;

use super::store::{Store, Stored};
use crate::key::{Digest, Hashed};

/// Longest header, as in the reference implementation.
const HEADER: u64 = 100_000_000;

/// Reads a file of `len` bytes: its hash and its tensors, those of names that are not `wanted` left
/// out. Sizes are compared with the file's own before anything is allocated.
pub(super) fn read(
    source: impl Read,
    len: u64,
    file: &Arc<str>,
    store: &mut Store,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Digest, Vec<(String, Stored)>)> {
    let mut source = Hashed::new(source);
    let metadata = header(&mut source, len)?;
    let mut tensors = Vec::new();
    let mut bytes = Vec::new();
    for name in metadata.offset_keys() {
        let info = metadata.info(&name).context("a tensor without a place")?;
        bytes.resize(info.data_offsets.1 - info.data_offsets.0, 0);
        source
            .read_exact(&mut bytes)
            .with_context(|| format!("tensor `{name}` cannot be read"))?;
        if wanted(&name) {
            let dtype = DType::try_from(info.dtype)
                .ok()
                .with_context(|| format!("tensor `{name}` is of type {:?}", info.dtype))?;
            let stored = store.keep((file, &name), &bytes, dtype, &info.shape)?;
            tensors.push((name, stored));
        }
    }
    Ok((source.digest(), tensors))
}

/// The names, types, shapes and places of the tensors, which the file is found to hold.
fn header(source: &mut impl Read, len: u64) -> Result<Metadata> {
    let whole = "it is not a whole safetensors file";
    let mut size = [0; 8];
    source.read_exact(&mut size).context(whole)?;
    let size = u64::from_le_bytes(size);
    let rest = len.saturating_sub(8);
    if size > rest.min(HEADER) {
        bail!("{whole}: its header should take {size} of {rest} bytes");
    }
    let mut text = vec![0; usize::try_from(size).context(whole)?];
    source.read_exact(&mut text).context(whole)?;
    let metadata: Metadata = serde_json::from_slice(&text).context(whole)?;
    let (promised, there) = (metadata.data_len() as u64, rest - size);
    if promised != there {
        bail!(
            "{whole}: its tensors should take {promised} bytes, it has {there}\n\
             hint: the file was cut off or changed; fetch it again"
        );
    }
    Ok(metadata)
}
