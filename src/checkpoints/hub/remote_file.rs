//! A file of a repository: name, size and hash.

use super::id::is_hex;

/// A file to download.
pub(super) struct RemoteFile {
    /// Path in the repository.
    pub(super) name: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// Hash of its content.
    pub(super) hash: Checksum,
}

/// Hash of a file's content, and the name of its blob in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    /// SHA-256 of the bytes, for files in Git LFS.
    Sha256(String),
    /// Git blob hash, the SHA-1 of `blob <size>\0` and the bytes, for all other files.
    GitBlob(String),
}

impl Checksum {
    /// Parses an `ETag`; `None` if it is neither kind of hash.
    pub(super) fn parse(etag: &str) -> Option<Self> {
        let etag = etag.trim().trim_start_matches("W/").trim_matches('"');
        match etag.len() {
            64 if is_hex(etag) => Some(Self::Sha256(etag.to_owned())),
            40 if is_hex(etag) => Some(Self::GitBlob(etag.to_owned())),
            _ => None,
        }
    }

    /// Returns the hexadecimal digits.
    pub(super) fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitBlob(hex) => hex,
        }
    }
}
