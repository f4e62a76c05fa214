//! Weight files.

use std::io::{Cursor, Write as _};

use acem3::checkpoints::store::weight_files::read_weights;
use zip::CompressionMethod;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::bundle::Bundle;

/// Reads a safetensors file.
pub fn read_safetensors(bytes: &[u8]) -> bool {
    Bundle::of_file("a.safetensors", bytes).read("a.safetensors", |path| read_weights(path).is_ok())
}

/// Reads a file of PyTorch: a zip archive.
pub fn read_torch(bytes: &[u8]) -> bool {
    Bundle::of_file("a.bin", bytes).read("a.bin", |path| read_weights(path).is_ok())
}

/// Reads a pickle in an archive with valid checksums and the storages `0` and `1`.
pub fn read_pickle(bytes: &[u8]) -> bool {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let values: Vec<u8> = (0..64).collect();
    for (name, content) in [("a/data.pkl", bytes), ("a/data/0", &values), ("a/data/1", &[])] {
        archive.start_file(name, stored).unwrap();
        archive.write_all(content).unwrap();
    }
    read_torch(archive.finish().unwrap().get_ref())
}
