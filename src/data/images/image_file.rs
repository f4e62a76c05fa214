//! Reads image files.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use acem3_vision::{DecodeError, ImageLimits};

use crate::support::files::regular_file;

/// Reads an image file up to its size limit.
///
/// # Errors
///
/// The file cannot be read, or is too large. The message does not name the file.
pub fn read_image_file(path: &Path, limits: &ImageLimits) -> Result<Arc<[u8]>, String> {
    let describe = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            "no such file\nhint: image paths are relative to the file that names them".to_owned()
        }
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidInput => error.to_string(),
        io::ErrorKind::IsADirectory => {
            "expected an image file, found a folder\nhint: set `image` to one file per case"
                .to_owned()
        }
        _ => format!("cannot be read: {error}"),
    };
    let file = regular_file::open(path).map_err(describe)?;
    let (length, max_bytes) = (file.metadata().map_err(describe)?.len(), limits.bytes as u64);
    if length > max_bytes {
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        let limit = limits.bytes;
        return Err(DecodeError::TooManyBytes { size, limit }.to_string());
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read, or its metadata may not give a length.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(describe)?;
    Ok(bytes.into())
}
