//! Verification of downloaded files against the hashes of the hub.

use std::fs::File;
use std::io;
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::error::{HubError, HubErrorKind};
use super::remote_file::{Checksum, RemoteFile};

/// Compares the hash of a downloaded file with the hub's.
pub(super) fn verify_hash(file: &RemoteFile, path: &Path) -> Result<(), HubError> {
    let found = hash_file(&file.hash, path).map_err(|error| HubError::disk(path, &error))?;
    let expected = file.hash.hex();
    let kind = match file.hash {
        Checksum::Sha256(_) => "sha256",
        Checksum::GitBlob(_) => "git blob hash",
    };
    if found == expected {
        return Ok(());
    }
    Err(mismatch_error(file, &format!("expected {kind} {expected}, found {found}")))
}

/// Creates the error for a file whose size or hash differs from the hub's.
pub(super) fn mismatch_error(file: &RemoteFile, details: &str) -> HubError {
    let message = format!("{}: {details}", file.name);
    let hint = "the download was deleted; try again, and if the error persists, check the proxy \
                and HF_ENDPOINT";
    HubError::new(HubErrorKind::Mismatch, message, hint)
}

/// Hashes a file with the algorithm of `checksum`.
fn hash_file(checksum: &Checksum, path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    match checksum {
        Checksum::Sha256(_) => {
            let mut hash = Sha256::new();
            io::copy(&mut file, &mut hash)?;
            Ok(format!("{:x}", hash.finalize()))
        }
        Checksum::GitBlob(_) => {
            let size = file.metadata()?.len();
            let mut hash = Sha1::new().chain_update(format!("blob {size}\0"));
            io::copy(&mut file, &mut hash)?;
            Ok(format!("{:x}", hash.finalize()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_without_hash_are_ignored() {
        let git = "ce013625030ba8dba906f756967f9e9ca394464a";
        assert_eq!(Checksum::parse(&format!("W/\"{git}\"")), Some(Checksum::GitBlob(git.into())));
        assert!(matches!(Checksum::parse(&"0".repeat(64)), Some(Checksum::Sha256(_))));
        for none in ["", "\"abc\"", "../../../../../../../../../../../../../x"] {
            assert_eq!(Checksum::parse(none), None, "{none}");
        }
        assert_eq!(Checksum::parse(&"../x".repeat(16)), None);
    }

    #[test]
    fn git_blob_hash_matches_git() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "hello\n").unwrap();
        // `printf 'hello\n' | git hash-object --stdin`
        let git = Checksum::GitBlob(String::new());
        assert_eq!(hash_file(&git, &path).unwrap(), "ce013625030ba8dba906f756967f9e9ca394464a");
        std::fs::write(&path, "abc").unwrap();
        let sha256 = Checksum::Sha256(String::new());
        assert!(hash_file(&sha256, &path).unwrap().starts_with("ba7816bf8f01cfea"));
    }
}
