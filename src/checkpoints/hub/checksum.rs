//! The two hashes by which the hub names a file's content.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::id::is_hex;

/// A content's hash, which is also the name of its blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    /// Of large files: SHA-256 of the bytes.
    Sha256(String),
    /// Of small files: SHA-1 of `blob <size>\0` and the bytes, as git has it.
    Git(String),
}

impl Checksum {
    /// The checksum that an `ETag` states; `None` where it states none.
    pub(super) fn parse(etag: &str) -> Option<Self> {
        let etag = etag.trim().trim_start_matches("W/").trim_matches('"');
        match etag.len() {
            64 if is_hex(etag) => Some(Self::Sha256(etag.to_owned())),
            40 if is_hex(etag) => Some(Self::Git(etag.to_owned())),
            _ => None,
        }
    }

    /// Its digits.
    pub(super) fn digits(&self) -> &str {
        match self {
            Self::Sha256(digits) | Self::Git(digits) => digits,
        }
    }

    /// What kind it is, in messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "sha256",
            Self::Git(_) => "git hash",
        }
    }

    /// The digits of the same kind that a file has.
    pub(super) fn of_file(&self, path: &Path) -> io::Result<String> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        match self {
            Self::Sha256(_) => digest(Sha256::new(), file),
            Self::Git(_) => digest(Sha1::new().chain_update(format!("blob {size}\0")), file),
        }
    }
}

fn digest<D: Digest>(mut hash: D, file: File) -> io::Result<String> {
    let mut reader = BufReader::new(file);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = reader.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(buffer.get(..n).unwrap_or_default());
    }
    let mut digits = String::new();
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_states_a_hash_or_none() {
        let git = "ce013625030ba8dba906f756967f9e9ca394464a";
        assert_eq!(
            Checksum::parse(&format!("W/\"{git}\"")),
            Some(Checksum::Git(git.into()))
        );
        assert!(matches!(
            Checksum::parse(&"0".repeat(64)),
            Some(Checksum::Sha256(_))
        ));
        for none in ["", "\"abc\"", "../../../../../../../../../../../../../x"] {
            assert_eq!(Checksum::parse(none), None, "{none}");
        }
        assert_eq!(Checksum::parse(&"../x".repeat(16)), None);
    }

    #[test]
    fn a_small_file_is_hashed_as_git_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "hello\n").unwrap();
        // `printf 'hello\n' | git hash-object --stdin`
        let git = Checksum::Git(String::new());
        assert_eq!(
            git.of_file(&path).unwrap(),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        std::fs::write(&path, "abc").unwrap();
        let sha256 = Checksum::Sha256(String::new());
        assert!(
            sha256
                .of_file(&path)
                .unwrap()
                .starts_with("ba7816bf8f01cfea")
        );
    }
}
