//! Safetensors files: read tensor by tensor, with buffers of three tensors, and written atomically.

use std::io::{Read, Write as _};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result, bail};
use candle::{DType, Tensor};
use safetensors::View;
use safetensors::tensor::Metadata;
use serde_json::json;

use crate::checkpoints::store::tensor_store::{
    EncodedTensor, FileTensors, StoredTensor, TensorStore,
};
use crate::support::digest::HashingReader;
use crate::support::files::atomic_file;

/// Maximum header size in bytes, as in the reference implementation.
const MAX_HEADER_LEN: u64 = 100_000_000;

/// Length of the queue between the thread that reads tensors and the one that converts them.
const READ_AHEAD: usize = 1;

/// Reads a file of `len` bytes. Returns its hash and the `wanted` tensors. Checks all sizes against
/// the file size before allocating memory.
///
/// A thread reads and hashes the file while this one hashes and converts the tensors.
pub(crate) fn read(
    source: impl Read + Send,
    len: u64,
    file: &Arc<str>,
    store: &mut TensorStore,
    wanted: impl Fn(&str) -> bool,
) -> Result<FileTensors> {
    let mut source = HashingReader::new(source);
    let metadata = read_header(&mut source, len)?;
    let names = metadata.offset_keys();
    let (sender, receiver) = mpsc::sync_channel(READ_AHEAD);
    let (used_buffers, free_buffers) = mpsc::channel::<Vec<u8>>();
    thread::scope(|scope| {
        let (names, metadata) = (&names, &metadata);
        let reader = thread::Builder::new().name("weights".to_owned());
        let reader = reader.spawn_scoped(scope, move || {
            for name in names {
                let buffer = free_buffers.try_recv().unwrap_or_default();
                let bytes = read_tensor(&mut source, name, metadata, buffer);
                let has_failed = bytes.is_err();
                if sender.send(bytes).is_err() || has_failed {
                    break;
                }
            }
            source.digest()
        });
        let reader = reader.context("cannot start a thread that reads weights")?;
        let mut tensors = Vec::new();
        for (name, bytes) in names.iter().zip(receiver) {
            let bytes = bytes?;
            if wanted(name) {
                let stored = intern(name, &bytes, metadata, file, store)?;
                tensors.push((name.clone(), stored));
            }
            // Fails after the reader has ended, when it needs no buffer.
            used_buffers.send(bytes).ok();
        }
        match reader.join() {
            Ok(digest) => Ok(FileTensors { digest, tensors }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Reads the bytes of the next tensor into a buffer.
fn read_tensor(
    source: &mut impl Read,
    name: &str,
    metadata: &Metadata,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>> {
    let (start, end) = metadata.info(name).context("header without offsets")?.data_offsets;
    bytes.resize(end - start, 0);
    source.read_exact(&mut bytes).with_context(|| format!("tensor `{name}` cannot be read"))?;
    Ok(bytes)
}

/// Adds a tensor to the store.
fn intern(
    name: &str,
    bytes: &[u8],
    metadata: &Metadata,
    file: &Arc<str>,
    store: &mut TensorStore,
) -> Result<StoredTensor> {
    let info = metadata.info(name).context("header without offsets")?;
    let dtype = DType::try_from(info.dtype)
        .ok()
        .with_context(|| format!("tensor `{name}`: type {:?} is not supported", info.dtype))?;
    store.intern(&EncodedTensor { file, name, bytes, encoding: dtype.into(), shape: &info.shape })
}

/// Writes tensors to a file, atomically and with the permissions of the umask, with a buffer of one
/// tensor.
///
/// The function of the `safetensors` crate creates a file that only its owner can read.
pub fn write<'a>(
    tensors: impl IntoIterator<Item = (&'a String, &'a Tensor)>,
    path: &Path,
) -> Result<()> {
    let mut tensors: Vec<(&String, &Tensor)> = tensors.into_iter().collect();
    // As the crate does: large types first, so that all tensors are aligned.
    tensors.sort_by(|(a, x), (b, y)| {
        let size = |tensor: &Tensor| tensor.dtype().size_in_bytes();
        size(y).cmp(&size(x)).then_with(|| a.cmp(b))
    });
    let (mut header, mut start) = (serde_json::Map::new(), 0);
    for (name, tensor) in &tensors {
        let end = start + View::data_len(tensor);
        let info = json!({"dtype": View::dtype(tensor), "shape": tensor.dims(), "data_offsets": [start, end]});
        header.insert((*name).clone(), info);
        start = end;
    }
    let mut header = serde_json::to_vec(&header).context("cannot write the header")?;
    header.resize(header.len().next_multiple_of(8), b' ');
    let written = atomic_file::replace_atomic(path, |file| {
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        tensors.iter().try_for_each(|(_, tensor)| file.write_all(&View::data(tensor)))
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Reads names, types, shapes and offsets of the tensors, and checks that they match the file size.
fn read_header(source: &mut impl Read, len: u64) -> Result<Metadata> {
    let malformed = "malformed or incomplete safetensors file";
    let mut size = [0; 8];
    source.read_exact(&mut size).context(malformed)?;
    let size = u64::from_le_bytes(size);
    let rest = len.saturating_sub(8);
    if size > rest.min(MAX_HEADER_LEN) {
        bail!("{malformed}: invalid header size {size} with {rest} bytes left");
    }
    let mut text = vec![0; usize::try_from(size).context(malformed)?];
    source.read_exact(&mut text).context(malformed)?;
    let metadata: Metadata = serde_json::from_slice(&text).context(malformed)?;
    let (expected, found) = (metadata.data_len() as u64, rest - size);
    if expected != found {
        bail!(
            "{malformed}: expected {expected} bytes of tensors, found {found}\n\
             hint: the file was truncated or changed; download it again"
        );
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn written_file_has_default_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let [tensors, plain] = ["a.safetensors", "b"].map(|name| dir.path().join(name));
        let one = Tensor::new(&[1_f32], &candle::Device::Cpu).unwrap();
        write([(&"one".to_owned(), &one)], &tensors).unwrap();
        std::fs::write(&plain, "").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&tensors), mode(&plain));
        let read = candle::safetensors::load(&tensors, &candle::Device::Cpu).unwrap();
        assert_eq!(read["one"].to_vec1::<f32>().unwrap(), [1.0]);
    }
}
